// What happens now: crawls, hosts, jobs; and why an address is where it is.

const POLL_MS = 2000;

// Calls `work` now and again and again, until the view is left.
async function repeatedly(signal, work) {
  for (;;) {
    if (!document.hidden) await work();
    await new Promise((done, left) => {
      const timer = setTimeout(done, POLL_MS);
      signal.addEventListener('abort', () => { clearTimeout(timer); left(new DOMException('', 'AbortError')); }, { once: true });
    });
    signal.throwIfAborted();
  }
}

const STATES = { running: 'stateRunning', stopping: 'stateStopping', ready: 'stateReady', waiting: 'stateWaiting', blocked: 'stateBlocked', broken: 'stateBroken', done: 'stateDone', idle: 'stateIdle', free: 'stateFree' };
const MARKS = { running: '▶', stopping: '■', ready: '●', waiting: '◷', blocked: '‖', broken: '✕', done: '✓', idle: '○', free: '–' };

function stateOf(state) {
  return h('span', { class: `state ${STATES[state] ? state : ''}` }, h('span', { 'aria-hidden': 'true' }, `${MARKS[state] ?? '·'} `), STATES[state] ? t(STATES[state]) : state);
}

// Asks for a part of a view; a part that fails tells so and leaves the others.
async function part(box, path, signal, show) {
  try {
    show(await api(path, { signal }));
    return true;
  } catch (error) {
    if (error.name === 'AbortError' || error.status === 401) throw error;
    fill(box, error instanceof Failure && error.code === 'not_found' ? empty(t('notAvailable')) : trouble(error));
    return false;
  }
}

async function liveView(box, { parameters, signal }) {
  const sort = ['queued', 'answered', 'failed', 'name'].includes(parameters.sort) ? parameters.sort : 'queued';
  const [crawls, verdicts, hosts, pages] = [h('div', {}, waiting()), h('div', {}, waiting()), h('div', {}, waiting()), h('div', {})];
  const lost = h('p', { class: 'note bad', hidden: true });
  let paused = false;
  const pause = h('button', {
    type: 'button', 'aria-pressed': 'false',
    on: { click: () => { paused = !paused; pause.setAttribute('aria-pressed', paused); pause.textContent = paused ? t('resume') : t('pause'); announce(paused ? t('paused') : ''); } },
  }, t('pause'));
  const order = select('sort', sort, [['queued', t('byQueued')], ['answered', t('byAnswered')], ['failed', t('byFailed')], ['name', t('byName')]]);
  box.append(h('p', { class: 'right' }, pause), lost,
    h('section', { class: 'card' }, h('h2', {}, t('crawls')), crawls),
    h('section', { class: 'card' }, h('h2', {}, t('verdicts')), verdicts),
    h('section', { class: 'card' }, h('h2', {}, t('hosts')), h('form', {
      class: 'filters', on: { submit: (event) => { event.preventDefault(); go(place('live', '', { sort: order.value })); } },
    }, field(t('sort'), order), h('div', { class: 'field' }, h('button', { type: 'submit' }, t('apply')))), hosts, pages));
  const before = new Map();
  let shownNext;
  await repeatedly(signal, async () => {
    if (paused) return;
    const query = new URLSearchParams({ sort, limit: '25', ...(parameters.cursor ? { cursor: parameters.cursor } : {}) });
    try {
      await api('/healthz', { signal });
      lost.hidden = true;
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      lost.textContent = t('retrying');
      lost.hidden = false;
      return;
    }
    await Promise.all([
      part(crawls, '/v1/live', signal, (told) => showCrawls(crawls, told, before)),
      part(verdicts, '/v1/reasons', signal, (told) => showVerdicts(verdicts, told)),
      part(hosts, `/v1/hosts?${query}`, signal, (told) => {
        showHosts(hosts, told);
        if (shownNext !== told.next) { shownNext = told.next; fill(pages, pager('live', parameters, told.next)); }
      }),
    ]);
  });
}

function showCrawls(box, told, before) {
  const now = Date.parse(told.now);
  announce(told.crawls.length ? t('nCrawls', { n: number(told.crawls.length) }) : t('noCrawls'));
  if (!told.crawls.length) { fill(box, empty(t('noCrawls'))); return; }
  fill(box, told.crawls.map((crawl) => {
    const key = `${crawl.job} ${crawl.store} ${crawl.started}`;
    // The pace since the last look, or since the start at the first one.
    const held = before.get(key) ?? { now: Date.parse(crawl.started), pages: 0 };
    const pace = now > held.now ? ((crawl.pages - held.pages) * 1000) / (now - held.now) : held.pace ?? 0;
    before.set(key, { now, pages: crawl.pages, pace });
    const figures = [
      ['perSecond', number(pace, { maximumFractionDigits: pace < 10 ? 1 : 0 })], ['pagesRead', number(crawl.pages)], ['queued', number(crawl.queued)],
      ['inFlight', number(crawl.inFlight)], ['newDocs', number(crawl.new)], ['duplicates', number(crawl.duplicates)],
      ['failedPages', number(crawl.errors)], ['requests', number(crawl.requests)], ['bytes', bytes(crawl.bytes)],
    ];
    return h('article', { class: 'crawl' }, h('h3', {}, crawl.job ?? `${t('crawl')} (${t('noJob')})`, ' ', stateOf(crawl.state)),
      h('p', { class: 'quiet' }, t('pair', { name: t('started'), value: '' }), moment(crawl.started), ' · ', crawl.store),
      h('dl', { class: 'figures' }, figures.map(([name, value]) => h('div', {}, h('dt', {}, t(name)), h('dd', {}, value)))));
  }));
}

function showVerdicts(box, told) {
  const sums = [['documents', told.documents], ['copies', told.copies], ['waiting', told.waiting], ['failedPages', told.errors]];
  fill(box, h('dl', { class: 'figures' }, sums.map(([name, value]) => h('div', {}, h('dt', {}, t(name)), h('dd', {}, number(value))))),
    h('div', { class: 'pair' }, reasonTable(t('duplicatesBy'), told.duplicates), reasonTable(t('refusedBy'), told.refused), reasonTable(t('ownBy'), told.own)));
}

// Counts by reason, the largest first; null if there are none.
function reasonTable(caption, counts) {
  const rows = Object.entries(counts ?? {}).filter(([, count]) => count > 0).sort(([, one], [, other]) => other - one);
  if (!rows.length) return null;
  const most = rows[0][1];
  const share = (count) => {
    const bar = h('span', { class: 'share', 'aria-hidden': 'true' });
    bar.style.width = `${Math.max(1, Math.round((100 * count) / most))}%`;
    return h('span', { class: 'shares' }, bar);
  };
  return table(caption, [t('reason'), t('count'), ''], rows.map(([name, count]) => [code(name), number(count), share(count)]), { numeric: [1] });
}

function showHosts(box, told) {
  if (!told.rows.length) { fill(box, empty(t('noHosts'))); return; }
  const heads = [t('host'), t('state'), t('nextVisit'), t('queued'), t('answered'), t('noAnswer'), t('delay'), t('trouble')];
  fill(box, table(t('hosts'), heads, told.rows.map((row) => [
    h('span', { dir: 'auto' }, row.host), stateOf(row.state), moment(row.nextVisit, { dateStyle: 'short', timeStyle: 'medium' }), number(row.queued), number(row.answered),
    number(row.failed), seconds(row.delayMs), row.trouble ? code(row.trouble) : '–',
  ]), { unseen: true, numeric: [3, 4, 5, 6] }));
}

function outcomeOf(run) {
  if (!run) return h('span', { class: 'quiet' }, '–');
  return h('span', {}, code(run.outcome), run.reason ? t('inBrackets', { what: runReason(run.reason) }) : '', ' ', moment(run.ended ?? run.started ?? run.planned));
}

async function jobsView(box, { argument, signal }) {
  if (argument) { await runsView(box, argument, signal); return; }
  const note = h('div', {});
  const list = h('div', { class: 'card' }, waiting());
  box.append(note, list);
  let shown = '';
  const act = async (name, what) => {
    try {
      await api(`/v1/jobs/${encodeURIComponent(name)}/${what}`, { method: 'POST', signal });
      const words = t(what === 'start' ? 'startedJob' : 'stoppedJob', { name });
      fill(note, h('p', { class: 'note' }, words));
      announce(words);
    } catch (error) {
      if (error.name === 'AbortError') return;
      fill(note, error.status === 409 ? h('p', { class: 'note bad', role: 'alert' }, t('jobConflict')) : trouble(error));
    }
    await look().catch(() => {});
  };
  const look = () => part(list, '/v1/jobs', signal, (told) => {
    const text = JSON.stringify(told);
    if (text === shown) return;
    shown = text;
    if (!told.enabled) { fill(list, empty(t('jobsOff'))); return; }
    if (!told.rows.length) { fill(list, empty(t('noJobs'))); return; }
    fill(list, table(t('jobs'), [t('job'), t('state'), t('schedule'), t('next'), t('last'), t('action')], told.rows.map((row) => {
      const what = row.state === 'idle' ? 'start' : 'stop';
      return [h('a', { href: place('jobs', row.name), 'data-key': `job ${row.name}` }, row.name), stateOf(row.state), h('code', {}, row.schedule), moment(row.next), outcomeOf(row.last),
        h('button', { type: 'button', 'data-key': `act ${row.name}`, 'aria-label': t(`${what}Job`, { name: row.name }), on: { click: () => act(row.name, what) } }, t(what))];
    }), { unseen: true }));
  }).then((fine) => { if (!fine) shown = ''; return fine; });
  await repeatedly(signal, look);
}

async function runsView(box, name, signal) {
  box.append(h('p', {}, h('a', { href: place('jobs') }, t('backToJobs'))), waiting());
  const told = await api(`/v1/jobs/${encodeURIComponent(name)}/runs?limit=50`, { signal });
  box.lastChild.remove();
  const heads = [t('started'), t('ended'), t('outcome'), t('trigger'), t('pagesRead'), t('newDocs'), t('duplicates'), t('bytes')];
  box.append(h('div', { class: 'card' }, told.rows.length ? table(t('runsOf', { name }), heads, told.rows.map((run) => [
    moment(run.started ?? run.planned), moment(run.ended), [code(run.outcome), run.reason ? t('inBrackets', { what: runReason(run.reason) }) : ''], code(run.trigger),
    number(run.counts?.pages), number(run.counts?.new), number(run.counts?.duplicates), bytes(run.counts?.bytes),
  ]), { numeric: [4, 5, 6, 7] }) : empty(t('noRuns'))));
}

async function explainView(box, { parameters, signal }) {
  const url = parameters.url ?? '';
  const input = h('input', { type: 'text', name: 'url', value: url, inputmode: 'url', autocomplete: 'off', placeholder: 'https://example.org/page' });
  box.append(h('form', {
    class: 'stack', role: 'search', 'aria-label': t('explain'),
    on: { submit: (event) => { event.preventDefault(); if (input.value.trim()) go(place('explain', '', { url: input.value.trim() })); else input.focus(); } },
  }, h('p', { class: 'quiet' }, t('explainHelp')), field(t('explainFor'), input), h('p', {}, h('button', { type: 'submit', class: 'main' }, t('explainGo')))));
  if (!url) return;
  const body = h('section', { class: 'card' }, waiting());
  box.append(body);
  try {
    const told = await api(`/v1/explain?${new URLSearchParams({ url, language })}`, { signal });
    announce(told.summary);
    const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
    fill(body, h('h2', { tabindex: '-1', 'data-focus': true }, t('explained')), h('p', {}, webLink(told.url)),
      h('p', { class: 'summary' }, h('strong', {}, code(told.state)), told.reason ? ` · ${code(told.reason)}` : '', h('br', {}), told.summary),
      told.facts.length ? table(t('facts'), [t('fact'), t('value')], told.facts.map((fact) => [fact.name, text(fact.value)]), { unseen: true }) : null);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    fill(body, trouble(error));
  }
}
