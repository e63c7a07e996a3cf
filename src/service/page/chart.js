// Bars over time, drawn by hand.

const SVG = 'http://www.w3.org/2000/svg';

function svg(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The least round number that is not below `value`: 1, 2 or 5 and zeros.
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((round) => round >= value) ?? value;
}

// Draws `rows` of { start, value } into `box`, as wide as it is.
function bars(box, what, rows, day) {
  const [width, height] = [Math.max(260, box.clientWidth || 640), 210];
  const [left, right, top, bottom] = [48, 8, 12, 26];
  const top_ = rounded(Math.max(1, ...rows.map((row) => row.value)));
  const inner = { width: width - left - right, height: height - top - bottom };
  const step = inner.width / Math.max(rows.length, 1);
  const y = (value) => top + inner.height * (1 - value / top_);
  const short = new Intl.DateTimeFormat(locale(), day
    ? { month: 'short', day: 'numeric', timeZone: 'UTC' } : { hour: '2-digit', minute: '2-digit' });
  const long = new Intl.DateTimeFormat(locale(), day
    ? { dateStyle: 'medium', timeZone: 'UTC' } : { dateStyle: 'medium', timeStyle: 'short' });
  const most = Math.max(0, ...rows.map((row) => row.value));
  const label = rows.length ? t('chartLabel', {
    what, from: long.format(rows[0].start), to: long.format(rows[rows.length - 1].start), most: number(most),
  }) : what;
  const chart = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label, class: 'chart' });
  const whole = top_ < 4 ? top_ : top_ % 4 === 0 ? 4 : top_ % 5 === 0 ? 5 : 2;
  for (let at = 0; at <= whole; at += 1) {
    const value = (top_ * at) / whole;
    chart.append(svg('line', { x1: left, x2: width - right, y1: y(value), y2: y(value), class: at ? 'grid' : 'axis' }));
    chart.append(svg('text', { x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, number(value, { notation: 'compact' })));
  }
  const labels = Math.max(1, Math.ceil(rows.length / Math.max(1, Math.floor(inner.width / 72))));
  rows.forEach((row, at) => {
    const x = left + at * step;
    const size = row.value ? Math.max(1, y(0) - y(row.value)) : 0;
    const bar = svg('rect', { x: x + step * 0.12, y: y(0) - size, width: Math.max(1, step * 0.76), height: size, class: 'bar' });
    bar.append(svg('title', {}, `${long.format(row.start)}: ${number(row.value)}`));
    chart.append(bar);
    if (at % labels === 0) {
      const last = x + step / 2 + 30 > width;
      const [place_, anchor] = last ? [width - 1, 'end'] : [x + step / 2, 'middle'];
      chart.append(svg('text', { x: place_, y: height - 8, 'text-anchor': anchor }, short.format(row.start)));
    }
  });
  box.replaceChildren(chart);
}
