// The frame: views and their addresses, language, state of the service.

const VIEWS = {
  live: liveView, charts: chartsView, articles: articlesView, growing: growingView,
  search: searchView, document: documentView, jobs: jobsView, explain: explainView, workers: workersView,
};
// A cluster does not keep the lists that the other views are made of.
const OF_CLUSTER = document.body.dataset.cluster === 'yes';
const IN_MENU = OF_CLUSTER ? ['workers'] : ['live', 'charts', 'articles', 'growing', 'search', 'jobs', 'explain'];

let current = null;

function go(hash) {
  if (location.hash === hash) render();
  else location.hash = hash;
}

// Reads `#/view/argument?name=value`.
function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [view, argument = ''] = path.split('/');
  let plain = '';
  try { plain = decodeURIComponent(argument); } catch { plain = argument; }
  return { view: view || IN_MENU[0], argument: plain, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

async function render() {
  const asked = route();
  const last = current;
  last?.stop.abort();
  const stop = new AbortController();
  current = { view: asked.view, argument: asked.argument, stop };
  const main = document.getElementById('main');
  const known = OF_CLUSTER ? [...IN_MENU, 'document'].includes(asked.view) : asked.view !== 'workers' && Object.hasOwn(VIEWS, asked.view);
  const heading = h('h1', { tabindex: '-1' });
  const box = h('div', { class: 'view' });
  const title = (text, of) => {
    heading.textContent = text;
    heading.dir = 'auto';
    if (of) heading.lang = of;
    document.title = `${text} – uniqcrawl`;
  };
  title(known ? t(asked.view) : t('notFound'));
  main.replaceChildren(heading, box);
  for (const link of document.querySelectorAll('#views a')) {
    if (link.dataset.view === asked.view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const same = last && last.view === asked.view && last.argument === asked.argument;
  if (last) heading.focus({ preventScroll: same });
  announce('');
  if (!known) {
    box.append(h('p', {}, h('a', { href: place(IN_MENU[0]) }, t(OF_CLUSTER ? 'toWorkers' : 'toLive'))));
    return;
  }
  try {
    await VIEWS[asked.view](box, { ...asked, signal: stop.signal, title });
  } catch (error) {
    if (error.name === 'AbortError' || stop.signal.aborted) return;
    for (const left of box.querySelectorAll('.quiet')) if (left.textContent === t('loading')) left.remove();
    box.append(trouble(error));
  }
  // Whoever asked for something in a view is led to it.
  if (same && !stop.signal.aborted) {
    const wanted = box.querySelector('[data-focus]');
    if (wanted && (document.activeElement === heading || document.activeElement === document.body)) wanted.focus();
  }
}

function setLanguage(wanted) {
  language = wanted;
  const html = document.documentElement;
  html.lang = language === 'zh' ? 'zh-CN' : 'en';
  document.getElementById('skip').textContent = t('skip');
  document.getElementById('nav').setAttribute('aria-label', t('views'));
  const button = document.getElementById('language');
  button.textContent = t('other');
  button.setAttribute('aria-label', t('otherName'));
  button.lang = language === 'zh' ? 'en' : 'zh-CN';
  fill(document.getElementById('views'), IN_MENU.map((view) => h('li', {}, h('a', { href: place(view), 'data-view': view, 'data-key': view }, t(view)))));
  document.getElementById('version').textContent = t('version', { v: document.body.dataset.version });
}

async function health() {
  const box = document.getElementById('health');
  try {
    const told = await api('/readyz', { plain: true });
    box.textContent = told.documents === undefined ? t('ready') : t('healthy', { n: number(told.documents) });
    box.className = 'fine';
  } catch (error) {
    box.textContent = t(error.status ? 'starting' : 'down');
    box.className = 'bad';
  }
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});
document.getElementById('language').addEventListener('click', () => {
  setLanguage(language === 'zh' ? 'en' : 'zh');
  memory.write(ofBrowser, 'language', language);
  const last = current;
  current = null;
  last?.stop.abort();
  render();
  health();
});
window.addEventListener('hashchange', render);
const kept = memory.read(ofBrowser, 'language');
setLanguage(['en', 'zh'].includes(kept) ? kept : /^zh\b/i.test(navigator.language) ? 'zh' : 'en');
render();
health();
setInterval(() => { if (!document.hidden) health(); }, 15000);
