// One document: its facts, its copies, what is like it, and how two copies differ.

async function documentView(box, { argument, parameters, signal, title }) {
  const id = encodeURIComponent(argument);
  box.append(waiting());
  const [document_, copies, similar] = await Promise.all([
    api(`/v1/documents/${id}`, { signal }),
    api(`/v1/documents/${id}/copies?${new URLSearchParams({ limit: '100', ...(parameters.cursor ? { cursor: parameters.cursor } : {}) })}`, { signal }),
    api(`/v1/documents/${id}/similar`, { signal }).catch((error) => { if (error.name === 'AbortError') throw error; return { rows: [], failed: error }; }),
  ]);
  title(titled(document_), document_.language);
  fill(box, factsOf(document_), copiesOf(argument, parameters, document_, copies));
  const place_ = h('div', {});
  put(box, [place_, textOf(document_), mediaOf(copies), similarOf(similar), historyOf(document_)]);
  if (parameters.left && parameters.right) await differenceInto(place_, id, parameters, signal);
}

function factsOf(row) {
  const facts = [
    ['address', webLink(row.url)], ['media', row.media], ['author', row.author], ['published', row.published ? moment(row.published) : null],
    ['language', row.language], ['category', row.category], ['copies', number(row.copies)], ['popularity', number(row.popularity)],
    ['firstSeen', moment(row.firstSeen)], ['lastSeen', moment(row.lastSeen)], ['description', row.description],
    ['docId', h('code', {}, row.docId)], ['merged', row.merged?.length ? row.merged.join(', ') : null],
  ].filter(([, value]) => value !== null && value !== undefined && value !== '');
  return h('section', { class: 'card' }, h('h2', {}, t('facts')),
    h('dl', { class: 'facts' }, facts.map(([name, value]) => h('div', {}, h('dt', {}, t(name)), h('dd', { dir: 'auto' }, value)))));
}

function textOf(row) {
  const paragraphs = (row.text ?? '').split(/\n+/).filter((part) => part.trim());
  const text = row.withheld ? empty(t('noText')) : paragraphs.length
    ? h('div', { class: 'prose', lang: row.language || null, dir: 'auto' }, paragraphs.map((part) => h('p', {}, part))) : empty(t('emptyText'));
  return h('section', { class: 'card' }, h('h2', {}, t('text')), text);
}

function mediaOf(copies) {
  if (!copies.media?.length) return null;
  const rows = copies.media.map((row) => [row.media || t('unknown'), number(row.copies)]);
  return h('section', { class: 'card slim' }, h('h2', {}, t('byMedia')),
    table(t('byMedia'), [t('media'), t('copies')], rows, { unseen: true, numeric: [1] }),
    copies.mediaComplete === false ? h('p', { class: 'quiet' }, t('incomplete')) : null);
}

function similarOf(similar) {
  const told = similar.failed ? trouble(similar.failed) : similar.rows.length
    ? h('ol', { class: 'articles' }, similar.rows.map((row) => article(row, h('p', { class: 'grown' }, t('alike', { n: percent(row.similarity) })))))
    : empty(t('noSimilar'));
  return h('section', { class: 'card' }, h('h2', {}, t('similarDocuments')), told);
}

function historyOf(row) {
  if (!row.history?.length) return null;
  return h('section', { class: 'card' }, h('h2', {}, t('history')),
    h('ul', {}, row.history.map((change) => h('li', {}, moment(change.time), ': ', webLink(change.from), ' → ', webLink(change.to)))));
}

function copiesOf(argument, parameters, document_, copies) {
  const rows = copies.rows;
  const picks = { left: parameters.left ?? document_.url, right: parameters.right ?? rows.find((row) => row.url !== document_.url)?.url };
  const pick = (side, row) => h('input', {
    type: 'radio', name: side, value: row.url, checked: picks[side] === row.url, 'data-key': `${side} ${row.url}`,
    'aria-label': t(side === 'left' ? 'chooseLeft' : 'chooseRight', { what: `${row.media} ${row.url}` }),
  });
  const cells = rows.map((row) => [
    [h('span', { dir: 'auto' }, row.media || t('unknown')), row.canonical ? h('span', { class: 'badge' }, t('canonical')) : null],
    ...(rows.length > 1 ? [pick('left', row), pick('right', row)] : []),
    moment(row.arrival), h('span', { class: 'wide', dir: 'auto', lang: row.language || null }, row.title), code(row.key), percent(row.similarity), webLink(row.url),
  ]);
  const heads = [t('media'), ...(rows.length > 1 ? [t('left'), t('right')] : []), t('arrived'), t('title'), t('key'), t('likeness'), t('address')];
  const note = h('p', { class: 'bad', role: 'alert' });
  const form = h('form', {
    on: {
      submit: (event) => {
        event.preventDefault();
        const chosen = new FormData(event.target);
        const [left, right] = [chosen.get('left'), chosen.get('right')];
        if (!left || !right || left === right) { note.textContent = t('pickTwo'); return; }
        go(place('document', argument, { ...parameters, left, right }));
      },
    },
  }, table(t('allCopies'), heads, cells, { unseen: true, numeric: [rows.length > 1 ? 6 : 4] }),
  rows.length > 1 ? [h('p', { class: 'quiet' }, t('compareHelp')), note, h('p', {}, h('button', { type: 'submit', class: 'main' }, t('compare')))] : empty(t('onlyOne')));
  const next = copies.next || parameters.cursor ? h('nav', { class: 'pager', 'aria-label': t('pages_') },
    parameters.cursor ? h('a', { href: place('document', argument) }, t('first')) : null,
    copies.next ? h('a', { href: place('document', argument, { cursor: copies.next }) }, t('more')) : null) : null;
  return h('section', { class: 'card' }, h('h2', {}, `${t('allCopies')} (${number(copies.copies)})`), form, next);
}

async function differenceInto(box, id, parameters, signal) {
  const section = h('section', { class: 'card' }, h('h2', { tabindex: '-1', 'data-focus': true }, t('diff')), waiting());
  box.append(section);
  try {
    const [left, right] = await Promise.all([parameters.left, parameters.right].map((url) => (
      api(`/v1/documents/${id}/copy?${new URLSearchParams({ url })}`, { signal }))));
    section.lastChild.remove();
    put(section, [left.withheld || right.withheld ? empty(t('noText')) : differenceOf(left, right)]);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    section.lastChild.remove();
    section.append(trouble(error));
  }
}

// Two texts side by side.
function differenceOf(left, right) {
  const { rows, cut } = difference(left.text, right.text);
  const changed = rows.filter((row) => !row.same).length;
  const same = rows.filter((row) => row.same).reduce((sum, row) => sum + row.count, 0);
  const words = changed ? t('diffSum', { same: number(same), changed: number(changed) }) : t('diffSame');
  const side = (copy) => h('th', { scope: 'col', dir: 'auto' }, `${copy.media || t('unknown')}`, h('small', {}, copy.url));
  const piece = (parts, tag, copy) => h('td', { lang: copy.language || null, dir: 'auto' },
    parts.map(([text, differs]) => (differs ? h(tag, {}, text) : text)));
  const body = rows.map((row) => {
    if (!row.same) return h('tr', { class: 'changed' }, piece(row.left, 'del', left), piece(row.right, 'ins', right));
    const { text, count } = row;
    if (count <= 2) return h('tr', {}, h('td', { dir: 'auto' }, text), h('td', { dir: 'auto' }, text));
    return h('tr', {}, h('td', { colspan: '2' }, h('details', {}, h('summary', {}, t('diffFolded', { n: number(count) })), h('p', { dir: 'auto' }, text))));
  });
  return [
    h('p', {}, words), cut ? h('p', { class: 'note' }, t('diffCut')) : null,
    changed ? h('p', { class: 'quiet' }, t('diffLegend')) : null,
    h('table', { class: 'diff' }, h('caption', { class: 'unseen' }, t('diff')), h('thead', {}, h('tr', {}, side(left), side(right))), h('tbody', {}, body)),
  ];
}
