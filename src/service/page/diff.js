// The difference of two texts: sentences first, words or characters inside those that differ.

const TEXT_MAX = 200000;
const SENTENCES_MAX = 4000;
const TOKENS_MAX = 4000;
const STEPS_MAX = 1000;

// Cuts a text into sentences; all characters stay.
function sentences(text) {
  return text.match(/[^。！？!?.\n]*(?:[。！？!?]+["'”’」』）)]*|\.+["'”’)]*(?=\s|$)|\n+|\.|$)\s*/gu)?.filter((part) => part !== '') ?? [];
}

// Cuts a text into words, single Han, kana and Hangul characters, blanks and marks.
function tokens(text) {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]|\s+|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}])[\p{L}\p{M}\p{N}_])+|[^\s\p{L}\p{M}\p{N}_]/gu) ?? [];
}

// Runs of what is equal (`=`), only in the left (`-`) and only in the right list (`+`), by the
// algorithm of Myers (An O(ND) Difference Algorithm). Null if it needs too many steps.
function runs(left, right, stepsMax = STEPS_MAX) {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let leftEnd = left.length;
  let rightEnd = right.length;
  while (leftEnd > start && rightEnd > start && left[leftEnd - 1] === right[rightEnd - 1]) { leftEnd -= 1; rightEnd -= 1; }
  const n = leftEnd - start;
  const m = rightEnd - start;
  const most = Math.min(n + m, stepsMax);
  const reach = new Int32Array(2 * most + 3);
  const trace = [];
  const middle = most + 1;
  let found = n === 0 && m === 0 ? 0 : -1;
  for (let d = 0; d <= most && found < 0; d += 1) {
    trace.push(reach.slice(middle - d, middle + d + 1));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[middle + k - 1] < reach[middle + k + 1]);
      let x = d === 0 ? 0 : down ? reach[middle + k + 1] : reach[middle + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && left[start + x] === right[start + y]) { x += 1; y += 1; }
      reach[middle + k] = x;
      if (x >= n && y >= m) { found = d; break; }
    }
  }
  if (found < 0) return null;
  const steps = [];
  let x = n;
  let y = m;
  for (let d = found; d > 0; d -= 1) {
    // What was reached after d - 1 steps.
    const before = trace[d];
    const at = (k) => before[k + d];
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = at(from);
    const fromY = fromX - from;
    const midX = down ? fromX : fromX + 1;
    while (x > midX) { steps.push('='); x -= 1; y -= 1; }
    steps.push(down ? '+' : '-');
    x = fromX;
    y = fromY;
  }
  while (x > 0) { steps.push('='); x -= 1; }
  steps.reverse();
  const kinds = [...'='.repeat(start), ...steps, ...'='.repeat(left.length - leftEnd)];
  const all = [];
  let [i, j] = [0, 0];
  for (const kind of kinds) {
    const part = kind === '+' ? right[j] : left[i];
    if (kind !== '+') i += 1;
    if (kind !== '-') j += 1;
    const last = all[all.length - 1];
    if (last && last.kind === kind) last.parts.push(part);
    else all.push({ kind, parts: [part] });
  }
  return all;
}

// Marks what differs within two pieces of text: lists of [text, differs] of both sides.
function marks(left, right) {
  const whole = { left: left ? [[left, true]] : [], right: right ? [[right, true]] : [] };
  if (!left || !right) return whole;
  const [one, other] = [tokens(left), tokens(right)];
  if (one.length > TOKENS_MAX || other.length > TOKENS_MAX) return whole;
  const found = runs(one, other);
  if (!found) return whole;
  const telling = (parts) => parts.filter((part) => /[\p{L}\p{N}]/u.test(part)).length;
  const same = found.filter((run) => run.kind === '=').reduce((sum, run) => sum + telling(run.parts), 0);
  // What has hardly a word in common reads better as two texts.
  if (same * 4 < Math.max(telling(one), telling(other))) return whole;
  const marked = { left: [], right: [] };
  found.forEach((run, at) => {
    const text = run.parts.join('');
    const between = run.kind === '=' && at > 0 && at < found.length - 1 && text.trim() === '';
    if (run.kind !== '+') marked.left.push([text, run.kind === '-' || between]);
    if (run.kind !== '-') marked.right.push([text, run.kind === '+' || between]);
  });
  for (const side of ['left', 'right']) {
    const joined = [];
    for (const [text, differs] of marked[side]) {
      const last = joined[joined.length - 1];
      if (last && last[1] === differs) last[0] += text;
      else joined.push([text, differs]);
    }
    marked[side] = joined;
  }
  return marked;
}

// Rows of the difference: equal sentences, or what stands on both sides instead.
function difference(left, right) {
  let cut = left.length > TEXT_MAX || right.length > TEXT_MAX;
  let one = sentences(left.slice(0, TEXT_MAX));
  let other = sentences(right.slice(0, TEXT_MAX));
  cut ||= one.length > SENTENCES_MAX || other.length > SENTENCES_MAX;
  one = one.slice(0, SENTENCES_MAX);
  other = other.slice(0, SENTENCES_MAX);
  // Blanks at the end of a sentence are no difference.
  const bare = (list) => list.map((part) => part.trimEnd());
  const found = runs(bare(one), bare(other))
    ?? [{ kind: '-', parts: bare(one) }, { kind: '+', parts: bare(other) }];
  const rows = [];
  let [i, j] = [0, 0];
  for (let at = 0; at < found.length; at += 1) {
    const run = found[at];
    if (run.kind === '=') {
      const size = run.parts.length;
      const parts = one.slice(i, i + size);
      rows.push({ same: true, text: parts.join('').trim(), count: parts.filter((part) => part.trim()).length });
      i += size;
      j += size;
      continue;
    }
    let [gone, come] = [0, 0];
    for (; at < found.length && found[at].kind !== '='; at += 1) {
      if (found[at].kind === '-') gone += found[at].parts.length;
      else come += found[at].parts.length;
    }
    at -= 1;
    const texts = [one.slice(i, i + gone).join('').trimEnd(), other.slice(j, j + come).join('').trimEnd()];
    i += gone;
    j += come;
    if (texts[0] || texts[1]) rows.push({ same: false, ...marks(texts[0], texts[1]) });
  }
  return { rows: rows.filter((row) => !row.same || row.count), cut };
}
