'use strict';

// All that the page says, in both languages. A function takes what it says something about.

const counted = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`;

const STRINGS = {
  en: {
    other: '中文', joint: '; ',
    title: 'anyccl explorer: how collectives move data',
    collective: 'collective', algorithm: 'algorithm', ranks: 'ranks', root: 'root', hosts: 'hosts',
    bytes: 'vector or block', topology: 'topology', placement: 'placement', speed: 'speed', shown: 'shown',
    choices: 'What is shown', player: 'Rounds',
    oneHost: 'one host', someHosts: (ranks) => `${ranks} ranks on each`, noRoot: 'none',
    themes: { auto: 'Colours: as the system', light: 'Colours: light', dark: 'Colours: dark' },
    first: 'Before the first round', back: 'Previous round', play: 'Play', pause: 'Pause',
    next: 'Next round', last: 'Last round',
    keys: 'Keys: ← → step, space plays, Home and End',
    position: (round, rounds) => (round === 0 ? `before, of ${rounds}` : `round ${round} of ${rounds}`),
    speeds: { 2400: 'slow', 1200: 'normal', 500: 'fast' },
    summary(m) {
      const what = m.combines === 'gathers' ? 'signal' : 'chunk';
      let text = `${m.id}, ${counted(m.ranks, 'rank')}${m.rooted ? `, root ${m.root}` : ''}: ` +
          `${counted(m.rounds, 'round')}; the busiest rank sends ${counted(m.sent, what)}`;
      if (what === 'chunk') text += `, ${(m.sent / m.of).toFixed(2)} times its input`;
      if (m.combines === 'sum') text += `; ${counted(m.roundings, 'rounding')}`;
      return text;
    },
    chunkSize: (size) => `a chunk has ${size}`,
    moves: 'Chunks and messages', before: 'before', after: 'after', input: 'input',
    rank: (r) => `rank ${r}`, rootRank: (r) => `rank ${r} (root)`, host: (h) => `host ${h}`,
    roundName: (k) => `round ${k}`,
    chunk: (c) => `chunk ${c.number} of rank${c.ranks.length === 1 ? '' : 's'} ${c.ranks.join('+')}`,
    chunks: (numbers, ranks) => `chunks ${numbers} of ${ranks}`,
    message: (m) => `round ${m.round}: rank ${m.from} sends ${m.what} to rank ${m.to}: ${m.step}`,
    makes: (rank, what) => `rank ${rank} makes ${what}`,
    readIn: (round) => ` in round ${round}`,
    holds: (numbers, ranks) => `${numbers} of ${ranks}`,
    isResult: 'part of the rank’s result', isNew: 'new in this round',
    live: {
      before: (rounds) => `Before the first of ${counted(rounds, 'round')}: the input of each rank.`,
      round: (k, rounds, sends) => `Round ${k} of ${rounds}: ${sends}.`,
      send: (m) => `rank ${m.from} sends ${m.what} to rank ${m.to}`,
      none: 'nothing is sent', more: (n) => `and ${n} more, see the table`,
    },
    picture: (title, state) => `${title}, ${state}. The tables below say the same.`,
    legendChunk: {
      none: 'a chunk with its number, in the colour of the rank it comes from',
      sum: 'a chunk with its number; a stripe for each rank whose contribution is in it',
      gathers: 'a signal without bytes; a stripe for each rank known to have come',
    },
    legendResult: 'bold frame: part of the result', legendNew: 'blue frame: new in this round',
    legendArrow: 'a message; dashed: read in a later round; dotted: sent in an earlier one',
    legendSum: 'the message is added', legendKept: 'the message is kept',
    links: 'Links', thisRound: 'this round', allRounds: 'all rounds',
    network: (n) => `${n.text}; ${n.placement === 'linear' ? 'rank i is at end i' : `ranks are placed ${n.placement}`}`,
    cable: (a, b, there, back) => `${a} to ${b}: ${there}, back ${back}`,
    legendLoad: (size) => `up to ${size}`,
    legendNumbers: (unit) => `numbers: what the busier direction carries, in ${unit}`,
    nothingCarried: 'no link carries anything in this round',
    times: 'Time line',
    uncalibrated: 'Simulated and uncalibrated, not measured',
    calibrated: (name) => `Simulated, not measured, with the constants of ${name}`,
    model: (m) => `a message takes ${m.alphaUs} us + ${m.hopUs} us a link, its sender ${m.overheadUs} us, ` +
        `a link carries ${m.GBps} GB/s, additions ${m.reduceGBps ? `${m.reduceGBps} GB/s` : 'are free'}`,
    takes: (us) => `The collective takes ${us} us`,
    simulated: (how, model, takes) => `${how}: ${model}. ${takes}.`,
    flight: (m) => `rank ${m.from} to rank ${m.to}, ${m.what}: leaves at ${m.begin} us, arrives at ${m.end} us`,
    waits: (r, begin, end) => `rank ${r} waits from ${begin} to ${end} us`,
    adds: (r, begin, end) => `rank ${r} adds from ${begin} to ${end} us`,
    legendWait: 'a rank waits', legendAdd: 'a rank adds', legendFlight: 'a message; bold: of this round',
    messages: 'Messages of this round', whole: 'all rounds', loads: 'What links carry', memory: 'What ranks have',
    columns: {
      round: 'round', from: 'from', to: 'to', chunks: 'chunks', ofRanks: 'of ranks', step: 'the receiver’s step',
      bytes: 'bytes', leaves: 'leaves, us', arrives: 'arrives, us', link: 'link', kind: 'kind',
      thisRound: 'bytes, this round', allRounds: 'bytes, all rounds', busy: 'of the time', rank: 'rank',
      before: 'before the round', after: 'after the round', result: 'result at the end',
    },
    nothing: 'nothing',
  },
  zh: {
    other: 'English', joint: '；',
    title: 'anyccl 浏览器：集合通信怎样移动数据',
    collective: '集合操作', algorithm: '算法', ranks: '进程数', root: '根', hosts: '主机',
    bytes: '向量或块', topology: '拓扑', placement: '放置', speed: '速度', shown: '显示',
    choices: '显示内容', player: '轮次',
    oneHost: '一台主机', someHosts: (ranks) => `每台 ${ranks} 个进程`, noRoot: '无',
    themes: { auto: '配色：跟随系统', light: '配色：浅色', dark: '配色：深色' },
    first: '第一轮之前', back: '上一轮', play: '播放', pause: '暂停', next: '下一轮', last: '最后一轮',
    keys: '按键：← → 单步，空格播放，Home 与 End',
    position: (round, rounds) => (round === 0 ? `开始前，共 ${rounds} 轮` : `第 ${round} 轮，共 ${rounds} 轮`),
    speeds: { 2400: '慢', 1200: '正常', 500: '快' },
    summary(m) {
      const signals = m.combines === 'gathers';
      let text = `${m.id}，${m.ranks} 个进程${m.rooted ? `，根为 ${m.root}` : ''}：${m.rounds} 轮；` +
          `最忙的进程发送 ${m.sent} 个${signals ? '信号' : '数据块'}`;
      if (!signals) text += `，是其输入的 ${(m.sent / m.of).toFixed(2)} 倍`;
      if (m.combines === 'sum') text += `；${m.roundings} 次舍入`;
      return text;
    },
    chunkSize: (size) => `每个数据块 ${size}`,
    moves: '数据块与消息', before: '之前', after: '之后', input: '输入',
    rank: (r) => `进程 ${r}`, rootRank: (r) => `进程 ${r}（根）`, host: (h) => `主机 ${h}`,
    roundName: (k) => `第 ${k} 轮`,
    chunk: (c) => `进程 ${c.ranks.join('+')} 的数据块 ${c.number}`,
    chunks: (numbers, ranks) => `进程 ${ranks} 的数据块 ${numbers}`,
    message: (m) => `第 ${m.round} 轮：进程 ${m.from} 把${m.what}发给进程 ${m.to}：${m.step}`,
    makes: (rank, what) => `进程 ${rank} 得到${what}`,
    readIn: (round) => `（第 ${round} 轮读取）`,
    holds: (numbers, ranks) => `${numbers}，来自 ${ranks}`,
    isResult: '属于该进程的结果', isNew: '本轮新得到',
    live: {
      before: (rounds) => `第一轮之前（共 ${rounds} 轮）：每个进程的输入。`,
      round: (k, rounds, sends) => `第 ${k} 轮，共 ${rounds} 轮：${sends}。`,
      send: (m) => `进程 ${m.from} 把${m.what}发给进程 ${m.to}`,
      none: '没有发送', more: (n) => `另有 ${n} 条，见表格`,
    },
    picture: (title, state) => `${title}，${state}。下面的表格内容相同。`,
    legendChunk: {
      none: '带编号的数据块，颜色表示来自哪个进程',
      sum: '带编号的数据块；每条色带是一个已计入的进程',
      gathers: '没有数据的信号；每条色带是一个已知到达的进程',
    },
    legendResult: '粗框：属于结果', legendNew: '蓝框：本轮新得到',
    legendArrow: '一条消息；虚线：在后面的轮次读取；点线：在前面的轮次发出',
    legendSum: '消息被加上', legendKept: '消息被保存',
    links: '链路', thisRound: '本轮', allRounds: '全部轮次',
    network: (n) => `${n.text}；${n.placement === 'linear' ? '进程 i 位于端点 i' : `进程按 ${n.placement} 放置`}`,
    cable: (a, b, there, back) => `${a} 到 ${b}：${there}，反向 ${back}`,
    legendLoad: (size) => `不超过 ${size}`,
    legendNumbers: (unit) => `数字：较忙方向的传输量，单位 ${unit}`,
    nothingCarried: '本轮没有链路传输数据',
    times: '时间线',
    uncalibrated: '模拟所得，未校准，并非测量',
    calibrated: (name) => `模拟所得，并非测量，常数来自 ${name}`,
    model: (m) => `一条消息 ${m.alphaUs} us，每段链路另加 ${m.hopUs} us，发送方 ${m.overheadUs} us，` +
        `链路 ${m.GBps} GB/s，${m.reduceGBps ? `加法 ${m.reduceGBps} GB/s` : '加法不计时间'}`,
    takes: (us) => `整个操作用时 ${us} us`,
    simulated: (how, model, takes) => `${how}：${model}。${takes}。`,
    flight: (m) => `进程 ${m.from} 到进程 ${m.to}，${m.what}：${m.begin} us 发出，${m.end} us 到达`,
    waits: (r, begin, end) => `进程 ${r} 从 ${begin} 到 ${end} us 在等待`,
    adds: (r, begin, end) => `进程 ${r} 从 ${begin} 到 ${end} us 在做加法`,
    legendWait: '进程在等待', legendAdd: '进程在做加法', legendFlight: '一条消息；粗线：属于本轮',
    messages: '本轮的消息', whole: '全部轮次', loads: '链路传输量', memory: '进程持有的数据块',
    columns: {
      round: '轮次', from: '发送方', to: '接收方', chunks: '数据块', ofRanks: '来自进程', step: '接收方的步骤',
      bytes: '字节', leaves: '发出，us', arrives: '到达，us', link: '链路', kind: '种类',
      thisRound: '本轮字节', allRounds: '全部字节', busy: '占时间', rank: '进程',
      before: '本轮之前', after: '本轮之后', result: '最终结果',
    },
    nothing: '无',
  },
};
