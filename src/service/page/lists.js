// Views of many documents: articles, what grows, search, charts.

// Links to the other pages of a list.
function pager(view, parameters, next) {
  const { cursor, ...rest } = parameters;
  if (!cursor && !next) return null;
  return h('nav', { class: 'pager', 'aria-label': t('pages_') },
    cursor ? h('a', { href: place(view, '', rest) }, t('first')) : null,
    next ? h('a', { href: place(view, '', { ...rest, cursor: next }) }, t('more')) : null);
}

// A form whose values become a part of the address of the view.
function filters(view, controls, read) {
  return h('form', {
    class: 'filters', role: 'search', 'aria-label': t('filter'),
    on: { submit: (event) => { event.preventDefault(); go(place(view, '', read(new FormData(event.target)))); } },
  }, controls, h('div', { class: 'field' }, h('button', { type: 'submit', class: 'main' }, t('apply'))));
}

const dayAfter = (day) => new Date(Date.parse(`${day}T00:00:00Z`) + 86400000).toISOString().slice(0, 10);
const DAY = /^\d{4}-\d\d-\d\d$/;

// The controls for media and language: what there is, and how often. Where not all media are listed,
// any name can be given.
function choices(told, media, of) {
  const options = (rows, name, value) => {
    const known = rows.map((row) => [row[name], t('choice', { name: row[name], n: number(row.documents) })]);
    return [['', t('allOfThem')], ...(value && !rows.some((row) => row[name] === value) ? [[value, value]] : []), ...known];
  };
  const some = () => {
    const list = h('datalist', { id: 'all-media' }, told.media.map((row) => h('option', { value: row.media })));
    const control = h('input', { type: 'text', name: 'media', value: media, list: list.id, placeholder: t('anotherMedia') });
    return put(field(t('media'), control), [list]);
  };
  return [
    told.complete ? field(t('media'), select('media', media, options(told.media, 'media', media))) : some(),
    field(t('language'), select('language', of, options(told.languages, 'language', of))),
  ];
}

async function articlesView(box, { parameters, signal }) {
  const { sort = 'newest', media = '', language: of = '', since = '', until = '', cursor = '' } = parameters;
  const input = (type, name, value) => h('input', { type, name, value });
  const facets = await api('/v1/facets', { signal }).catch((error) => {
    if (error.name === 'AbortError' || error.status === 401) throw error;
    // Then nothing can be chosen, and any name can be given.
    return { media: [], languages: [], complete: false };
  });
  const [media_, language_] = choices(facets, media, of);
  box.append(filters('articles', [
    field(t('order'), select('sort', sort, [['newest', t('newest')], ['oldest', t('oldest')], ['copies', t('mostCopies')], ['fewest', t('fewestCopies')]])),
    media_, language_,
    field(t('since'), input('date', 'since', since)),
    field(t('until'), input('date', 'until', until)),
    h('div', { class: 'field' }, h('a', { href: place('articles') }, t('clear'))),
  ], (form) => ({
    sort: form.get('sort'), media: form.get('media').trim(), language: form.get('language').trim(),
    since: form.get('since'), until: form.get('until'),
  })));
  const list = h('section', { 'aria-label': t('results') }, waiting());
  box.append(list);
  const query = new URLSearchParams({ sort, limit: '25' });
  for (const [name, value] of [['media', media], ['language', of], ['since', since], ['cursor', cursor]]) if (value) query.set(name, value);
  if (DAY.test(until)) query.set('until', dayAfter(until));
  const told = await api(`/v1/documents?${query}`, { signal });
  announce(t('nArticles', { n: number(told.rows.length) }));
  fill(list,
    told.rows.length ? h('ol', { class: 'articles' }, told.rows.map((row) => article(row)))
      : empty(told.next ? t('noneYet') : t('noArticles')),
    pager('articles', parameters, told.next));
}

async function growingView(box, { parameters, signal }) {
  const wanted = parameters.window ?? '24h';
  const choices = [['6h', t('hours', { n: 6 })], ['24h', t('hours', { n: 24 })], ['3d', t('days', { n: 3 })], ['7d', t('days', { n: 7 })], ['30d', t('days', { n: 30 })]];
  box.append(filters('growing', [field(t('window'), select('window', wanted, choices))], (form) => ({ window: form.get('window') })));
  const list = h('section', { 'aria-label': t('results') }, waiting());
  box.append(list);
  const told = await api(`/v1/trending?${new URLSearchParams({ window: wanted, limit: '50' })}`, { signal });
  announce(t('nArticles', { n: number(told.rows.length) }));
  fill(list, told.complete ? null : empty(t('growthCut')),
    told.rows.length ? h('ol', { class: 'articles' }, told.rows.map((row) => article(row,
      h('p', { class: 'grown' }, row.grown === 1 ? t('growth1') : t('growth', { n: number(row.grown) })))))
      : empty(t('noGrowth')));
}

// A text that is too long for an address lives as long as the page.
let longText = '';

async function searchView(box, { parameters, signal }) {
  const mode = ['text', 'sentence', 'words'].includes(parameters.mode) ? parameters.mode : 'text';
  const sort = ['copies', 'fewest'].includes(parameters.sort) ? parameters.sort : 'best';
  const text = parameters.q ?? (parameters.long ? longText : '');
  const note = h('p', { class: 'bad', role: 'alert', id: 'search-note' });
  const area = h('textarea', { name: 'q', rows: '4', dir: 'auto', 'aria-describedby': 'search-note', '.value': text });
  const radios = [['text', t('modeText')], ['sentence', t('modeSentence')], ['words', t('modeWords')]].map(([value, words]) => (
    h('label', { class: 'choice' }, h('input', { type: 'radio', name: 'mode', value, checked: value === mode }), ' ', words)));
  box.append(h('form', {
    role: 'search', class: 'stack', 'aria-label': t('search'),
    on: {
      submit: (event) => {
        event.preventDefault();
        const form = new FormData(event.target);
        const asked = form.get('q').trim();
        if (!asked) { note.textContent = t('searchEmpty'); area.focus(); return; }
        note.textContent = '';
        const how = { mode: form.get('mode'), sort: form.get('sort') === 'best' ? '' : form.get('sort') };
        if (asked.length <= 1500) go(place('search', '', { ...how, q: asked }));
        else { longText = asked; go(place('search', '', { ...how, long: Date.now() })); }
      },
    },
  }, field(t('searchFor'), area), h('fieldset', {}, h('legend', {}, t('mode')), radios, h('p', { class: 'quiet' }, t('modeHelp'))),
  field(t('order'), select('sort', sort, [['best', t('best')], ['copies', t('mostCopies')], ['fewest', t('fewestCopies')]])),
  note, h('p', {}, h('button', { type: 'submit', class: 'main' }, t('find')))));
  if (!text) { signal.throwIfAborted(); return; }
  const list = h('section', { 'aria-label': t('results') }, waiting());
  box.append(list);
  const told = await api('/v1/search', { method: 'POST', body: { text, mode, sort, limit: 30 }, signal });
  const all = number(told.documents ?? 0);
  const words = told.rows.length ? t('foundN', { n: number(told.rows.length), all }) : t('nothingFound', { n: all });
  announce(words);
  fill(list, h('h2', { tabindex: '-1', 'data-focus': true }, t('results')), h('p', { class: 'quiet' }, words),
    told.rows.length ? h('ol', { class: 'articles' }, told.rows.map((row) => article(row,
      row.sentence ? h('blockquote', { dir: 'auto' }, row.sentence) : null,
      h('p', { class: 'meta' },
        h('span', { class: 'grown' }, row.cosine === undefined ? t('score', { n: number(row.score, { maximumFractionDigits: 2 }) }) : t('alike', { n: percent(row.cosine) })),
        row.keywords?.length ? h('span', { dir: 'auto' }, t('pair', { name: t('keywords'), value: row.keywords.join(' · ') })) : null)))) : null);
}

async function chartsView(box, { parameters, signal }) {
  const by = parameters.by === 'day' ? 'day' : 'hour';
  box.append(filters('charts', [field(t('by'), select('by', by, [['hour', t('hour')], ['day', t('day')]]))], (form) => ({ by: form.get('by') })));
  const body = h('div', {}, waiting());
  box.append(body);
  const told = await api(`/v1/counts?by=${by}`, { signal });
  const step = by === 'day' ? 86400000 : 3600000;
  const known = new Map(told.rows.map((row) => [Date.parse(row.start), row]));
  const rows = [];
  const from = Math.floor(Date.parse(told.since) / step) * step;
  for (let start = from; start < Date.parse(told.until); start += step) {
    const row = known.get(start) ?? { documents: 0, copies: 0 };
    rows.push({ start, documents: row.documents, further: row.copies - row.documents });
  }
  const charts = [['newDocuments', 'documents'], ['furtherCopies', 'further']].map(([key, name]) => {
    const chart = h('div', { class: 'chartbox' });
    const sum = rows.reduce((all, row) => all + row[name], 0);
    return {
      whole: h('section', { class: 'card' }, h('h2', {}, t(key)), h('p', { class: 'quiet' }, t('pair', { name: t('total'), value: number(sum) })), chart),
      draw: () => bars(chart, t(key), rows.map((row) => ({ start: row.start, value: row[name] })), by === 'day'),
    };
  });
  const some = rows.filter((row) => row.documents || row.further).reverse();
  const when = by === 'day' ? { dateStyle: 'medium', timeZone: 'UTC' } : { dateStyle: 'medium', timeStyle: 'short' };
  const cells = some.map((row) => [moment(row.start, when), number(row.documents), number(row.further)]);
  fill(body, told.copies ? charts.map((chart) => chart.whole) : empty(t('noArrivals')),
    cells.length ? h('div', { class: 'card' }, table(t('arrivals'), [t('time'), t('newDocuments'), t('furtherCopies')], cells, { numeric: [1, 2] })) : null);
  const draw = () => charts.forEach((chart) => chart.draw());
  if (told.copies) {
    draw();
    window.addEventListener('resize', draw, { signal });
  }
}
