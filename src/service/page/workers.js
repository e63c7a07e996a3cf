// The workers of a cluster in one view: what they do, which shards they hold, and what waits.

// Numbers as ranges: 0–3, 7.
function ranges(numbers) {
  const all = [];
  for (const one of numbers) {
    const last = all[all.length - 1];
    if (last && last[1] + 1 === one) last[1] = one;
    else all.push([one, one]);
  }
  return all.map(([first, last]) => (first === last ? number(first) : `${number(first)}–${number(last)}`)).join(', ');
}

function figures(list) {
  return h('dl', { class: 'figures many' }, list.map(([name, value]) => h('div', {}, h('dt', {}, t(name)), h('dd', {}, value))));
}

const pace = (value) => number(value, { maximumFractionDigits: value < 10 ? 1 : 0 });
const exact = { dateStyle: 'short', timeStyle: 'medium' };

async function workersView(box, { signal }) {
  const names = ['totals', 'minutes', 'workers', 'shards', 'verdicts', 'nodes'];
  const parts = Object.fromEntries(names.map((name) => [name, h('div', {}, waiting())]));
  const titles = { totals: 'together', minutes: 'lastMinutes', workers: 'workers', shards: 'shards', verdicts: 'verdicts', nodes: 'nodes' };
  const lost = h('p', { class: 'note bad', hidden: true });
  let paused = false;
  const pause = h('button', {
    type: 'button', 'aria-pressed': 'false',
    on: { click: () => { paused = !paused; pause.setAttribute('aria-pressed', paused); pause.textContent = paused ? t('resume') : t('pause'); announce(paused ? t('paused') : ''); } },
  }, t('pause'));
  box.append(h('p', { class: 'right' }, pause), lost,
    ...names.map((name) => h('section', { class: 'card' }, h('h2', {}, t(titles[name])), parts[name])));
  await repeatedly(signal, async () => {
    if (paused) return;
    let told;
    try {
      told = await api('/v1/workers', { signal });
    } catch (error) {
      if (error.name === 'AbortError' || error.status === 401) throw error;
      lost.textContent = error.status ? worded(error) : t('retrying');
      lost.hidden = false;
      return;
    }
    lost.hidden = true;
    announce(t('nWorkers', { n: number(told.totals.workers) }));
    showTotals(parts.totals, told);
    showMinutes(parts.minutes, told);
    showWorkers(parts.workers, told);
    showShards(parts.shards, told);
    showRefused(parts.verdicts, told);
    showNodes(parts.nodes, told);
  });
}

function showTotals(box, { corpus, totals }) {
  const list = [['documents', number(corpus.documents)]];
  // What a cluster does not know is left out.
  if (corpus.copies !== undefined) list.push(['copies', number(corpus.copies)]);
  list.push(['secondLooks', number(corpus.secondLooksDue)]);
  if (totals.workers) {
    list.push(['perSecond', pace(totals.perSecond)], ['pagesRead', number(totals.pages)], ['queued', number(totals.queued)],
      ['inFlight', number(totals.inFlight)], ['noAnswer', number(totals.failed)], ['bytes', bytes(totals.bytes)]);
  }
  if (totals.shards) list.push(['linksInStreams', number(totals.linksInStreams)]);
  if (totals.workers) list.push(['linksWaiting', number(totals.linksWaiting)]);
  fill(box, figures(list));
}

// The minutes up to now, those in which nothing was read among them.
function showMinutes(box, { now, totals }) {
  const told = new Map(totals.minutes);
  if (!told.size) { fill(box, empty(t('noMinutes'))); return; }
  const last = Math.floor(Date.parse(now) / 60000);
  const first = Math.max(Math.min(...told.keys()), last - 9);
  const rows = [];
  for (let minute = first; minute <= last; minute += 1) rows.push({ start: minute * 60000, value: told.get(minute) ?? 0 });
  const chart = h('div', { class: 'chartbox' });
  fill(box, chart, h('details', { '.open': box.querySelector('details')?.open ?? false }, h('summary', {}, t('asTable')),
    table(t('pagesByMinute'), [t('time'), t('pagesRead')], rows.map((row) => [moment(row.start, { timeStyle: 'short' }), number(row.value)]), { numeric: [1] })));
  bars(chart, t('pagesByMinute'), rows);
}

function showWorkers(box, { workers, shards }) {
  if (!workers.length) { fill(box, empty(t('noWorkers'))); return; }
  const held = new Map();
  for (const shard of shards) if (shard.holder) held.set(shard.holder, [...(held.get(shard.holder) ?? []), shard.shard]);
  const heads = ['host', 'state', 'shards', 'perSecond', 'pagesRead', 'newDocs', 'duplicates', 'noAnswer', 'bytes', 'queued', 'inFlight', 'linksWaiting', 'lastCommit', 'started', 'version_'];
  const rows = workers.map((one) => {
    const own = held.get(one.worker) ?? [];
    return [
      h('span', { class: 'wide' }, h('span', { dir: 'auto' }, one.host || t('unknown')), h('br', {}), h('code', { class: 'quiet' }, one.worker)),
      stateOf(one.stopping ? 'stopping' : 'running'),
      own.length ? h('span', { class: 'wide' }, number(own.length), h('br', {}), h('span', { class: 'quiet' }, ranges(own))) : number(0),
      pace(one.perSecond), number(one.pages), number(one.new), number(one.duplicates), number(one.failed), bytes(one.bytes), number(one.queued),
      number(one.inFlight), number(one.linksWaiting), moment(one.lastCommit, exact), moment(one.started, exact), one.version,
    ];
  });
  fill(box, table(t('workers'), heads.map((head) => t(head)), rows, { unseen: true, numeric: [3, 4, 5, 6, 7, 8, 9, 10, 11] }));
}

// All shards as numbers, and those of which something is to be said as rows.
function showShards(box, { workers, shards, totals }) {
  if (!shards.length) { fill(box, empty(t('noShards'))); return; }
  const hosts = new Map(workers.map((one) => [one.worker, one.host]));
  const sums = [['shards', number(totals.shards)], ['held', number(totals.shardsHeld)], ['idle', number(totals.shardsIdle)], ['free', number(totals.shards - totals.shardsHeld)]];
  const rows = shards.map((shard) => {
    const state = !shard.holder ? 'free' : shard.idle ? 'idle' : 'running';
    const host = hosts.get(shard.holder);
    const holder = shard.holder ? h('span', { class: 'wide' }, host ? `${host} ` : '', h('code', {}, shard.holder)) : '–';
    return [number(shard.shard), stateOf(state), holder, moment(shard.since, exact), number(shard.links)];
  });
  const open = box.querySelector('details')?.open ?? shards.length <= 32;
  fill(box, figures(sums), h('details', { '.open': open }, h('summary', { 'data-key': 'shards' }, t('allShards')),
    table(t('shards'), [t('shard'), t('state'), t('worker'), t('since_'), t('linksWaitingFor')], rows, { unseen: true, numeric: [4] })));
}

function showRefused(box, { corpus, totals }) {
  const found = [reasonTable(t('duplicatesBy'), corpus.duplicates), reasonTable(t('refusedHeld'), totals.refused)].filter(Boolean);
  fill(box, found.length ? h('div', { class: 'pair' }, found) : empty(t('noVerdicts')));
}

function showNodes(box, { corpus }) {
  const share = (node) => (node.maxBytes ? percent(node.usedBytes / node.maxBytes) : t('noBound'));
  fill(box, table(t('nodes'), [t('node'), t('memoryUsed'), t('ofBound')],
    corpus.primaries.map((node) => [h('code', {}, node.node), bytes(node.usedBytes), share(node)]), { unseen: true, numeric: [1, 2] }));
}
