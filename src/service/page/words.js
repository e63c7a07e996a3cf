// All words of the page, in both languages. A part in braces is put in by `t`.
'use strict';

const WORDS = {
  en: {
    skip: 'Skip to the content', views: 'Views', other: '中文', otherName: 'Switch to Chinese: 中文',
    live: 'Live', charts: 'Charts', articles: 'Articles', growing: 'Growing', search: 'Search',
    document: 'Document', jobs: 'Jobs', explain: 'Explain',
    pair: '{name}: {value}', inBrackets: ' ({what})', loading: 'Loading…', apply: 'Apply', clear: 'Clear', more: 'Next page', first: 'First page',
    pages_: 'Pages', none: 'none', unknown: 'unknown', untitled: '(no title)',
    // Failures.
    unreachable: 'The service cannot be reached. It may have stopped; this page tries again when you reload it.',
    retrying: 'The service does not answer at the moment. What you see is the last state; it is asked again every few seconds.',
    notAvailable: 'Not available: this service does not offer this view.',
    notReady: 'The index of the search is still being made. Try again in a moment.',
    busy: 'The service is busy. Try again in a moment.',
    noDocument: 'There is no such document.', badUrl: 'This is not a web address.', gone: 'No address carries this document any more.',
    withheld: 'The pages of this document ask not to be shown.',
    failed: 'The service could not answer: {detail}',
    notFound: 'There is no such view.', toLive: 'Go to the live view',
    // Token.
    tokenTitle: 'This service needs a token', tokenText: 'It is kept until this tab is closed, and sent to this service only.',
    tokenLabel: 'Token', tokenSend: 'Use this token', tokenWrong: 'The service does not accept this token.',
    tokenMissing: 'Without the token, nothing can be shown.', tokenAsk: 'Enter the token',
    // Live.
    crawls: 'Running crawls', noCrawls: 'No crawl is running.', crawl: 'Crawl', noJob: 'without a job',
    perSecond: 'Pages/s', pagesRead: 'Pages', queued: 'Queue', inFlight: 'Under way', newDocs: 'New',
    duplicates: 'Duplicates', failedPages: 'Errors', bytes: 'Downloaded', requests: 'Requests', started: 'Started', state: 'State',
    verdicts: 'What became of the pages', noVerdicts: 'Nothing has been decided yet.',
    documents: 'Documents', copies: 'Copies', waiting: 'Waiting', reason: 'Reason', count: 'Number',
    duplicatesBy: 'Duplicates by the key that found them', refusedBy: 'Pages that were not stored, by reason', ownBy: 'Requests of the crawler itself', noAnswer: 'No answer',
    hosts: 'Hosts', noHosts: 'No host is known yet.', host: 'Host', nextVisit: 'Next visit', answered: 'Answered',
    delay: 'Delay', trouble: 'Last error', sort: 'Sort by', byQueued: 'Queue', byAnswered: 'Answers', byFailed: 'No answer', byName: 'Name',
    pause: 'Pause', resume: 'Go on', paused: 'Paused', nCrawls: '{n} crawls running', now: 'now',
    stateRunning: 'running', stateStopping: 'stopping', stateReady: 'ready', stateWaiting: 'waiting', stateBlocked: 'left alone',
    stateBroken: 'not answering', stateDone: 'done', stateIdle: 'idle',
    // Workers.
    workers: 'Workers', worker: 'Worker', together: 'All together', lastMinutes: 'Last minutes', shards: 'Shards', shard: 'Shard', nodes: 'Nodes', node: 'Node',
    nWorkers: '{n} workers', noWorkers: 'No worker is alive.', noShards: 'No worker has begun a crawl.', noMinutes: 'No worker tells of the last minutes.',
    secondLooks: 'Second looks due', linksInStreams: 'Links in streams', linksWaiting: 'Links to be sent', linksWaitingFor: 'Links that wait for it',
    pagesByMinute: 'Pages by minute', asTable: 'As a table', lastCommit: 'Last commit', version_: 'Version', since_: 'Since', allShards: 'All shards',
    held: 'Held', idle: 'Idle', free: 'Without a worker', stateFree: 'without a worker', refusedHeld: 'URLs that were not stored in the shards that are held, by reason',
    memoryUsed: 'Memory used', ofBound: 'Of its bound', noBound: 'no bound', toWorkers: 'Go to the workers',
    // Charts.
    by: 'Step', hour: 'Hours (last 48)', day: 'Days (last 30)', newDocuments: 'New documents', furtherCopies: 'Further copies of known documents',
    arrivals: 'Arrivals by time', time: 'Time', noArrivals: 'Nothing came in this time.', total: 'Total',
    chartLabel: '{what}: bar chart from {from} to {to}; the most is {most}. The figures are in the table below.',
    // Articles.
    newest: 'Newest first', oldest: 'Oldest first', mostCopies: 'Most copies first', fewestCopies: 'Fewest copies first', best: 'Best first', order: 'Order',
    media: 'Media', language: 'Language', since: 'From day', until: 'To day', filter: 'Filter', allOfThem: 'all', choice: '{name} ({n})', anotherMedia: 'or any other name',
    noArticles: 'No article fits.', noneYet: 'No article of those that were looked at fits; the list goes on.',
    similarN: '{n} similar articles', similar1: '1 similar article', similar0: 'no similar articles', nArticles: '{n} articles on this page',
    // Growing.
    window: 'Time', growth: '{n} further copies', growth1: '1 further copy', noGrowth: 'No document got a further copy in this time.',
    growthCut: 'Not all copies could be counted.', hours: '{n} hours', days: '{n} days',
    // Search.
    searchFor: 'What to search for', mode: 'Compare', modeText: 'whole texts', modeSentence: 'sentences', modeWords: 'words',
    modeHelp: 'Whole texts and sentences are compared by their words; paste as much text as you have.',
    find: 'Search', nothingFound: 'Nothing like it in {n} documents.', foundN: '{n} found in {all} documents',
    alike: '{n} alike', score: 'score {n}', keywords: 'Shared words', searchEmpty: 'Enter a text, a sentence or some words.', results: 'Results',
    // Document.
    facts: 'Facts', docId: 'docId', address: 'Address', author: 'Author', published: 'Published', firstSeen: 'First seen',
    lastSeen: 'Last seen', popularity: 'Popularity', category: 'Category', site: 'Site', merged: 'Merged from', description: 'Description',
    text: 'Text', noText: 'The page asks that its text is not shown.', emptyText: 'There is no text.', allCopies: 'All copies', byMedia: 'Copies by media', canonical: 'canonical',
    key: 'Found by', likeness: 'Likeness', arrived: 'Arrived', left: 'Left', right: 'Right', compare: 'Compare', compareHelp: 'Choose two copies to see how their texts differ.',
    chooseLeft: 'Left: {what}', chooseRight: 'Right: {what}', similarDocuments: 'Similar documents', noSimilar: 'No other document is similar.',
    history: 'History of the canonical address', onlyOne: 'This is the only copy.', incomplete: 'Only some are counted.',
    title: 'Title', diff: 'Difference', diffSame: 'The two texts are equal.', diffSum: 'Equal sentences: {same}. Places that differ: {changed}.',
    diffFolded: '{n} equal sentences', diffCut: 'The texts are long: only their beginnings are compared.', removed: 'removed', added: 'added', pickTwo: 'Choose two different copies.',
    diffLegend: 'Struck through: only in the left text. Underlined: only in the right text.',
    // Jobs.
    noJobs: 'There are no jobs in the file of jobs.', jobsOff: 'Jobs are not enabled: the service was started without a file of jobs.',
    job: 'Job', schedule: 'Schedule', next: 'Next run', last: 'Last run', action: 'Action', start: 'Start', stop: 'Stop', startJob: 'Start {name}', stopJob: 'Stop {name}',
    startedJob: '{name} was started.', stoppedJob: '{name} is being stopped.', jobConflict: 'The job is not in a state for that.', runs: 'Runs', runsOf: 'Runs of {name}', noRuns: 'It has not run yet.',
    outcome: 'Outcome', trigger: 'Trigger', planned: 'Planned', ended: 'Ended', backToJobs: 'All jobs',
    // Explain.
    explainFor: 'Address', explainHelp: 'Tells what became of an address and why.', explainGo: 'Explain', fact: 'Fact', value: 'Value', explained: 'What is known of it',
    // Footer.
    ready: 'Service ready', healthy: 'Service ready · {n} documents', starting: 'Service not ready', down: 'Service not reachable', version: 'Version {v}',
    copiesUnit: 'copies', regionTable: 'Table, can be scrolled: {what}',
  },
  zh: {
    skip: '跳到正文', views: '视图', other: 'English', otherName: '切换为英文：English',
    live: '实时', charts: '图表', articles: '文章', growing: '增长', search: '搜索',
    document: '文档', jobs: '任务', explain: '解释',
    pair: '{name}：{value}', inBrackets: '（{what}）', loading: '正在加载…', apply: '应用', clear: '清除', more: '下一页', first: '第一页',
    pages_: '分页', none: '无', unknown: '未知', untitled: '（无标题）',
    unreachable: '无法连接服务。它可能已停止；请重新加载本页再试。',
    retrying: '服务暂时没有回应。下面是最后一次的状态；每隔几秒会再次询问。',
    notAvailable: '不可用：此服务没有提供这个视图。',
    notReady: '搜索索引仍在建立，请稍后再试。',
    busy: '服务繁忙，请稍后再试。',
    noDocument: '没有这个文档。', badUrl: '这不是网页地址。', gone: '已没有任何地址载有此文档。',
    withheld: '此文档的网页要求不予显示。',
    failed: '服务无法回答：{detail}',
    notFound: '没有这个视图。', toLive: '前往实时视图',
    tokenTitle: '此服务需要令牌', tokenText: '令牌只保存到关闭此标签页为止，且只发送给此服务。',
    tokenLabel: '令牌', tokenSend: '使用此令牌', tokenWrong: '服务不接受此令牌。',
    tokenMissing: '没有令牌就无法显示任何内容。', tokenAsk: '输入令牌',
    crawls: '正在运行的抓取', noCrawls: '目前没有抓取在运行。', crawl: '抓取', noJob: '不属于任务',
    perSecond: '页/秒', pagesRead: '页面', queued: '队列', inFlight: '进行中', newDocs: '新文档',
    duplicates: '重复', failedPages: '错误', bytes: '已下载', requests: '请求', started: '开始', state: '状态',
    verdicts: '页面的结果', noVerdicts: '还没有任何结果。',
    documents: '文档', copies: '副本', waiting: '等待', reason: '原因', count: '数量',
    duplicatesBy: '重复页面（按发现依据）', refusedBy: '未保存的页面（按原因）', ownBy: '抓取程序自身的请求', noAnswer: '无回应',
    hosts: '主机', noHosts: '还没有已知的主机。', host: '主机', nextVisit: '下次访问', answered: '已回应',
    delay: '间隔', trouble: '最近的错误', sort: '排序', byQueued: '队列', byAnswered: '回应', byFailed: '无回应', byName: '名称',
    pause: '暂停', resume: '继续', paused: '已暂停', nCrawls: '{n} 个抓取正在运行', now: '现在',
    stateRunning: '运行中', stateStopping: '正在停止', stateReady: '就绪', stateWaiting: '等待中', stateBlocked: '暂不打扰',
    stateBroken: '无回应', stateDone: '完成', stateIdle: '空闲',
    workers: '工作进程', worker: '工作进程', together: '总计', lastMinutes: '最近几分钟', shards: '分片', shard: '分片', nodes: '节点', node: '节点',
    nWorkers: '{n} 个工作进程', noWorkers: '没有存活的工作进程。', noShards: '还没有工作进程开始抓取。', noMinutes: '没有工作进程报告最近几分钟的情况。',
    secondLooks: '待复查', linksInStreams: '流中的链接', linksWaiting: '待发送的链接', linksWaitingFor: '等待它接收的链接',
    pagesByMinute: '每分钟页面数', asTable: '以表格显示', lastCommit: '最近提交', version_: '版本', since_: '起始时间', allShards: '全部分片',
    held: '已持有', idle: '空闲', free: '无人持有', stateFree: '无人持有', refusedHeld: '所持分片中未保存的地址（按原因）',
    memoryUsed: '已用内存', ofBound: '占上限', noBound: '无上限', toWorkers: '前往工作进程',
    by: '步长', hour: '按小时（最近 48 小时）', day: '按天（最近 30 天）', newDocuments: '新文档', furtherCopies: '已知文档的新副本',
    arrivals: '按时间的到达数', time: '时间', noArrivals: '这段时间没有新内容。', total: '合计',
    chartLabel: '{what}：柱状图，从 {from} 到 {to}，最多为 {most}。数字见下表。',
    newest: '最新在前', oldest: '最旧在前', mostCopies: '副本最多在前', fewestCopies: '副本最少在前', best: '最佳在前', order: '顺序',
    media: '媒体', language: '语言', since: '起始日', until: '截止日', filter: '筛选', allOfThem: '全部', choice: '{name}（{n}）', anotherMedia: '或其他名称',
    noArticles: '没有符合的文章。', noneYet: '已查看的文章都不符合；列表还有后续。',
    similarN: '{n} 篇相似文章', similar1: '1 篇相似文章', similar0: '没有相似文章', nArticles: '本页 {n} 篇文章',
    window: '时间段', growth: '新增 {n} 个副本', growth1: '新增 1 个副本', noGrowth: '这段时间没有文档出现新副本。',
    growthCut: '未能统计全部副本。', hours: '{n} 小时', days: '{n} 天',
    searchFor: '搜索内容', mode: '比较方式', modeText: '全文', modeSentence: '句子', modeWords: '词语',
    modeHelp: '全文和句子按所含词语比较；可以粘贴整篇文章。',
    find: '搜索', nothingFound: '在 {n} 个文档中没有找到相似内容。', foundN: '在 {all} 个文档中找到 {n} 个',
    alike: '相似度 {n}', score: '得分 {n}', keywords: '共同词语', searchEmpty: '请输入文章、句子或词语。', results: '结果',
    facts: '信息', docId: 'docId', address: '地址', author: '作者', published: '发布时间', firstSeen: '首次发现',
    lastSeen: '最近发现', popularity: '热度', category: '类别', site: '网站', merged: '合并自', description: '摘要',
    text: '正文', noText: '网页要求不显示其正文。', emptyText: '没有正文。', allCopies: '全部副本', byMedia: '各媒体的副本数', canonical: '主副本',
    key: '发现依据', likeness: '相似度', arrived: '到达时间', left: '左', right: '右', compare: '比较', compareHelp: '选择两个副本，查看正文的差异。',
    chooseLeft: '左：{what}', chooseRight: '右：{what}', similarDocuments: '相似文档', noSimilar: '没有其他相似的文档。',
    history: '主地址的变更', onlyOne: '只有这一个副本。', incomplete: '只统计了一部分。',
    title: '标题', diff: '差异', diffSame: '两段正文完全相同。', diffSum: '相同的句子：{same}。不同之处：{changed}。',
    diffFolded: '{n} 句相同', diffCut: '正文较长：只比较了开头部分。', removed: '删去', added: '增加', pickTwo: '请选择两个不同的副本。',
    diffLegend: '删除线：只在左侧。下划线：只在右侧。',
    noJobs: '任务文件中没有任务。', jobsOff: '任务功能未启用：服务启动时没有指定任务文件。',
    job: '任务', schedule: '计划', next: '下次运行', last: '上次运行', action: '操作', start: '启动', stop: '停止', startJob: '启动 {name}', stopJob: '停止 {name}',
    startedJob: '已启动 {name}。', stoppedJob: '正在停止 {name}。', jobConflict: '任务目前的状态不允许此操作。', runs: '运行记录', runsOf: '{name} 的运行记录', noRuns: '还没有运行过。',
    outcome: '结果', trigger: '触发', planned: '计划时间', ended: '结束', backToJobs: '全部任务',
    explainFor: '地址', explainHelp: '说明一个地址的结果和原因。', explainGo: '解释', fact: '项目', value: '内容', explained: '已知信息',
    ready: '服务就绪', healthy: '服务就绪 · {n} 个文档', starting: '服务未就绪', down: '无法连接服务', version: '版本 {v}',
    copiesUnit: '副本', regionTable: '可滚动的表格：{what}',
  },
};

// Codes of the API, each with its words; a code that is not here is shown as it is.
const CODES = {
  out_of_scope: ['outside the scope', '不在抓取范围内'], depth_limit: ['too far from a seed', '离种子太远'],
  url_too_long: ['address too long', '地址过长'], path_too_deep: ['path too deep', '路径过深'],
  repeated_segment: ['path repeats a segment', '路径段重复'], repeated_sequence: ['path repeats segments', '路径段序列重复'],
  repeated_parameter: ['parameter repeats', '参数重复'], nofollow: ['links say nofollow', '链接标为 nofollow'],
  host_budget: ['host has enough addresses', '主机地址数已满'], host_size: ['host has no more room', '主机空间已满'], nested_escapes: ['escaped over and over', '多重转义'],
  calendar: ['calendar without end', '无尽的日历'], session_in_path: ['session in the path', '路径含会话标识'],
  host_in_path: ['path repeats the host', '路径重复主机名'], domain_hosts: ['domain has enough hosts', '域名主机数已满'],
  pattern_budget: ['pattern has enough addresses', '同类地址已满'], off_site: ['only in a sitemap of another site', '仅见于他站的站点地图'],
  sitemap_depth: ['sitemap nested too deep', '站点地图嵌套过深'], sitemap_limit: ['host has enough sitemaps', '站点地图数已满'],
  feed_limit: ['host has enough feeds', '订阅源数已满'], not_a_sitemap: ['not a sitemap', '不是站点地图'], no_sitemap: ['no sitemap there', '没有站点地图'],
  robots_disallowed: ['robots.txt forbids it', 'robots.txt 禁止'], address_refused: ['private IP address', '私有 IP 地址'],
  excluded: ['excluded by the filter', '被过滤规则排除'], not_included: ['not included by the filter', '未被过滤规则包含'],
  too_many_redirects: ['too many redirects', '重定向过多'], bad_redirect: ['bad redirect', '无效重定向'], no_yield: ['its kind gives nothing new', '同类地址没有新内容'],
  dns: ['name not resolved', '域名无法解析'], connect: ['no connection', '无法连接'], tls: ['no secure connection', '无法建立安全连接'],
  timeout: ['took too long', '超时'], bad_response: ['broken answer', '回应无效'], bad_encoding: ['cannot be decompressed', '无法解压'],
  decompression_bomb: ['grows beyond measure', '解压后过大'], robots_unreachable: ['robots.txt not reachable', '无法取得 robots.txt'], proxy: ['proxy failed', '代理失败'],
  http_error: ['error status', '错误状态码'], busy: ['server stayed busy', '服务器繁忙'], soft_404: ['error page', '错误页面'], probe: ['probe of the error page', '错误页面探测'],
  no_content: ['nothing there', '没有内容'], partial_content: ['a part only', '仅有部分内容'], not_ready: ['not ready yet', '尚未就绪'],
  other_status: ['other status', '其他状态码'], binary: ['binary data', '二进制数据'],
  not_a_page: ['neither HTML nor text', '不是网页或文本'], no_text: ['no main text', '没有正文'], unreadable: ['reader failed', '无法读取'], expired: ['expired', '已过期'],
  gone: ['gone', '已不存在'], sitemap: ['a sitemap', '站点地图'], feed: ['a feed', '订阅源'], noindex: ['asks not to be indexed', '要求不被收录'],
  /* Words of keys. */
  exact: ['equal text', '正文完全相同'], title: ['similar title', '标题相似'], near: ['similar text', '正文相似'],
  content: ['similar text', '正文相似'], sentence: ['long sentences', '长句相同'],
  skipped_by_rule: ['skipped by a learned rule', '按学得的规则跳过'], skipped_by_feed: ['skipped by a duplicate feed', '按信息源跳过'],
  nid: ['same nid', 'nid 相同'], url: ['same address', '地址相同'],
  running: ['running', '运行中'], done: ['done', '完成'], seeds_failed: ['seeds failed', '种子失败'], failed: ['failed', '失败'], stopped: ['stopped', '已停止'],
  interrupted: ['interrupted', '被中断'], refused: ['refused', '被拒绝'], missed: ['missed', '错过'],
  schedule: ['schedule', '计划'], asked: ['by hand', '手动'], by_hand: ['by hand', '手动'],
  stored: ['stored', '已保存'], duplicate: ['duplicate', '重复'], redirect: ['redirect', '重定向'], queued: ['in the queue', '在队列中'], unknown: ['unknown', '未知'], skipped: ['skipped', '已跳过'],
};

let language = 'en';

// The words of a key, with parts put in.
function t(key, parts = {}) {
  const words = WORDS[language][key] ?? WORDS.en[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (all, name) => (name in parts ? String(parts[name]) : all));
}

// The words of a code of the API.
function code(name) {
  const words = Object.hasOwn(CODES, name) ? CODES[name] : null;
  return words ? words[language === 'zh' ? 1 : 0] : String(name ?? '');
}

// Why a run of a job ended as it did, in Chinese; what is not here, such as a message of the system, is shown as it is.
const RUN_REASONS = [
  [/^nothing left to visit$/, '没有可访问的地址了'], [/^limit of (\d+) pages$/, '已达 $1 页的上限'], [/^time_max of (\S+) is over$/, '已超过 time_max（$1）'],
  [/^(\d+) addresses wait, the next until (\S+)$/, '$1 个地址在等待，最近的到 $2'], [/^(\d+) seeds not crawled$/, '$1 个种子未抓取'], [/^asked to stop$/, '被要求停止'],
  [/^a run of the job is under way$/, '此任务正在运行'], [/^an earlier moment of the job still waits for its run$/, '此任务较早的时刻仍在等待运行'],
  [/^no scheduler ran at that time$/, '当时没有调度程序在运行'], [/^a later run makes up for it$/, '由之后的一次运行补上'], [/^another process runs the job$/, '另一个进程正在运行此任务'],
  [/^another process uses the store (.+)$/, '另一个进程正在使用存储 $1'], [/^a crawl of the store (.+) is under way$/, '存储 $1 正在被抓取'],
  [/^the process died$/, '进程意外终止'], [/^the program is wrong: see the log$/, '程序出错：见日志'],
];

function runReason(text) {
  if (language !== 'zh') return text;
  return text.split('; ').map((part) => {
    const found = RUN_REASONS.find(([pattern]) => pattern.test(part));
    return found ? part.replace(...found) : part;
  }).join('；');
}
