// Elements, requests, numbers and dates. Nothing of a page is ever read as HTML.

// Makes an element. `attributes`: `class`, `on` (listeners), properties that begin with a dot, attributes.
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name.startsWith('.')) {
      element[name.slice(1)] = value;
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  put(element, children);
  return element;
}

// Appends children; what is no node is text.
function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// Replaces what is in an element, and keeps the focus on what has the same `data-key`.
function fill(element, ...children) {
  const held = document.activeElement;
  const key = held && element.contains(held) ? held.dataset.key : undefined;
  element.replaceChildren();
  put(element, children);
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  return element;
}

class Failure extends Error {
  constructor(status, name, detail) {
    super(detail);
    this.status = status;
    this.code = name;
  }
}

const memory = {
  read(store, name) {
    try { return store().getItem(name); } catch { return null; }
  },
  write(store, name, value) {
    try { store().setItem(name, value); } catch { /* Then it is forgotten. */ }
  },
};
const ofTab = () => window.sessionStorage;
const ofBrowser = () => window.localStorage;

let token = memory.read(ofTab, 'token') ?? '';

// Asks the service. It fails with a `Failure`, or with an `AbortError` if the view was left.
async function api(path, { signal, method = 'GET', body, plain = false } = {}) {
  const sent = token;
  const headers = {};
  if (sent) headers.authorization = `Bearer ${sent}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let answer;
  try {
    const text = body === undefined ? undefined : JSON.stringify(body);
    answer = await fetch(path, { method, headers, signal, body: text, credentials: 'omit' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure(0, 'unreachable', '');
  }
  const told = await answer.json().catch(() => null);
  if (answer.ok && told !== null) return told;
  if (answer.status === 401 && !plain) {
    // Another request may have brought a token meanwhile.
    if (sent === token) await askToken(sent !== '');
    return api(path, { signal, method, body });
  }
  throw new Failure(answer.status, told?.code ?? '', told?.detail ?? `${answer.status}`);
}

// Lists: what is not there on this service is no failure of it.
function worded(error) {
  if (error.status === 0) return t('unreachable');
  const known = {
    not_found: 'notAvailable', not_on_a_cluster: 'notAvailable', method_not_allowed: 'notAvailable', search_not_ready: 'notReady', busy: 'busy', rate_limited: 'busy',
    unknown_document: 'noDocument', bad_doc_id: 'noDocument', bad_url: 'badUrl', document_gone: 'gone', withheld: 'withheld', unauthorized: 'tokenMissing',
  };
  const key = known[error.code];
  return key ? t(key) : t('failed', { detail: error.message });
}

// A failure, told.
function trouble(error) {
  if (!(error instanceof Failure)) {
    console.error(error);
    return h('p', { class: 'note bad', role: 'alert' }, t('failed', { detail: error.message }));
  }
  const box = h('div', { class: 'note bad', role: 'alert' }, h('p', {}, worded(error)));
  if (error.code === 'unauthorized') {
    box.append(h('button', { type: 'button', on: { click: () => askToken(false).then(render, () => {}) } }, t('tokenAsk')));
  }
  return box;
}

const empty = (text) => h('p', { class: 'note' }, text);
const waiting = () => h('p', { class: 'quiet' }, t('loading'));

function announce(text) {
  const said = document.getElementById('said');
  if (said.textContent !== text) said.textContent = text;
}

const locale = () => (language === 'zh' ? 'zh-CN' : 'en-GB');
const number = (value, options) => new Intl.NumberFormat(locale(), options).format(value ?? 0);
const percent = (value) => number(value, { style: 'percent', maximumFractionDigits: 1 });

function bytes(value) {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];
  let step = 0;
  let rest = value ?? 0;
  while (rest >= 1000 && step < units.length - 1) { rest /= 1000; step += 1; }
  return number(rest, { style: 'unit', unit: units[step], unitDisplay: 'short', maximumFractionDigits: step ? 1 : 0 });
}

function seconds(ms) {
  return number((ms ?? 0) / 1000, { style: 'unit', unit: 'second', unitDisplay: 'short', maximumFractionDigits: 1 });
}

// A moment as a `time` element; what cannot be read is shown as it stands.
function moment(text, options = { dateStyle: 'medium', timeStyle: 'short' }) {
  if (!text) return h('span', { class: 'quiet' }, '–');
  const when = new Date(text);
  if (Number.isNaN(when.getTime())) return h('span', {}, text);
  return h('time', { datetime: when.toISOString() }, new Intl.DateTimeFormat(locale(), options).format(when));
}

// An address: a link only if it leads to the web.
function webLink(address, text = address) {
  let url = null;
  try { url = new URL(address); } catch { /* It is no address. */ }
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) {
    return h('a', { href: url.href, rel: 'noopener noreferrer', class: 'out' }, text);
  }
  return h('span', { class: 'dead' }, text);
}

// A place in this page.
function place(view, argument, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== '' && value !== null && value !== undefined) query.set(name, value);
  }
  const text = query.toString();
  return `#/${view}${argument ? `/${encodeURIComponent(argument)}` : ''}${text ? `?${text}` : ''}`;
}

function titled(document) {
  return document.title?.trim() ? document.title : t('untitled');
}

// A table with a caption; wide ones are scrolled by hand or keys.
function table(caption, heads, rows, { unseen = false, numeric = [] } = {}) {
  const kind = (at) => (numeric.includes(at) ? 'n' : null);
  const head = h('thead', {}, h('tr', {}, heads.map((text, at) => h('th', { scope: 'col', class: kind(at) }, text))));
  const body = h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell, at) => (
    at === 0 ? h('th', { scope: 'row' }, cell) : h('td', { class: kind(at) }, cell))))));
  const whole = h('table', {}, h('caption', { class: unseen ? 'unseen' : null }, caption), head, body);
  return h('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': t('regionTable', { what: caption }), 'data-key': `table ${caption}` }, whole);
}

let fields = 0;
// A control with its label.
function field(label, control) {
  fields += 1;
  control.id = `field${fields}`;
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control);
}

function select(name, value, choices) {
  return h('select', { name }, choices.map(([key, text]) => h('option', { value: key, selected: key === value }, text)));
}

// An article as a row of any list.
function article(row, ...extra) {
  const similar = row.similar ?? (row.copies ?? 1) - 1;
  const words = similar === 0 ? t('similar0') : similar === 1 ? t('similar1') : t('similarN', { n: number(similar) });
  return h('li', { class: 'article' },
    h('h3', {}, h('a', { href: place('document', row.docId), dir: 'auto', lang: row.language || null }, titled(row))),
    h('p', { class: 'meta' },
      h('span', { class: similar ? 'badge' : 'badge none' }, words),
      row.media ? h('span', { dir: 'auto' }, row.media) : null,
      row.language ? h('span', {}, row.language) : null,
      row.firstSeen ? moment(row.firstSeen) : null),
    ...extra);
}

// Asks for a token until one is accepted; it fails if the dialogue is left.
let asking = null;
function askToken(wrong) {
  asking ??= new Promise((done, left) => {
    const input = h('input', { type: 'password', name: 'token', autocomplete: 'off', required: true, spellcheck: 'false' });
    const note = h('p', { class: 'bad', role: 'alert' }, wrong ? t('tokenWrong') : '');
    const form = h('form', {
      on: {
        submit: async (event) => {
          event.preventDefault();
          const before = token;
          token = input.value.trim();
          try {
            await api('/v1/stats', { plain: true });
          } catch (error) {
            if (error.status === 401) {
              token = before;
              note.textContent = t('tokenWrong');
              input.select();
              return;
            }
          }
          memory.write(ofTab, 'token', token);
          dialog.dataset.done = 'yes';
          dialog.close();
        },
      },
    }, h('h2', { id: 'token-title' }, t('tokenTitle')), h('p', { id: 'token-text' }, t('tokenText')),
    field(t('tokenLabel'), input), note, h('p', {}, h('button', { type: 'submit', class: 'main' }, t('tokenSend'))));
    const dialog = h('dialog', { 'aria-labelledby': 'token-title', 'aria-describedby': 'token-text' }, form);
    dialog.addEventListener('close', () => {
      dialog.remove();
      asking = null;
      if (dialog.dataset.done) done();
      else left(new Failure(401, 'unauthorized', ''));
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
  return asking;
}
