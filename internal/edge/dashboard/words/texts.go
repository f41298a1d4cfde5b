// Package words holds all text of the live page, in each of its languages, and formats its numbers. It has no
// state.
package words

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Texts holds the text of the page in one language; its tags hold all of them. Percent signs are fmt verbs.
type Texts struct {
	Lang      string `en:"en" zh:"zh-Hans"`
	Other     string `en:"zh" zh:"en"`
	OtherName string `en:"中文" zh:"English"`
	Colon     string `en:": " zh:"："`
	Comma     string `en:", " zh:"，"`

	Title     string `en:"cellserver, live" zh:"cellserver 实时状态"`
	Skip      string `en:"Skip to the content" zh:"跳到正文"`
	Pause     string `en:"Pause" zh:"暂停"`
	Resume    string `en:"Resume" zh:"继续"`
	Lost      string `en:"The server has not answered since %s" zh:"自 %s 起服务器无响应"`
	NoScript  string `en:"Without JavaScript this page shows tables and does not update itself. Reload it every 5 seconds" zh:"未启用 JavaScript：本页只显示表格，不会自动更新。每 5 秒重新加载"`
	Languages string `en:"Language" zh:"语言"`
	Copy      string `en:"Copy" zh:"复制"`
	Copied    string `en:"Copied" zh:"已复制"`

	Host            string `en:"Host" zh:"主机"`
	Uptime          string `en:"Uptime" zh:"运行时间"`
	Version         string `en:"Version" zh:"版本"`
	InMemory        string `en:"in memory" zh:"内存"`
	DaysHours       string `en:"%d d %d h" zh:"%d 天 %d 小时"`
	HoursMinutes    string `en:"%d h %d min" zh:"%d 小时 %d 分钟"`
	Minutes         string `en:"%d min" zh:"%d 分钟"`
	Days            string `en:"%d days" zh:"%d 天"`
	Hours           string `en:"%d h" zh:"%d 小时"`
	Seconds         string `en:"%d s" zh:"%d 秒"`
	UnderAMinute    string `en:"under a minute" zh:"不到 1 分钟"`
	NoPassword      string `en:"Other hosts can use this server without a password: set --requirepass-file." zh:"其他主机无需密码即可使用本服务器：请设置 --requirepass-file。"`
	RefusesHosts    string `en:"Clients on other hosts are refused because no password is set (protected mode): set --requirepass-file." zh:"未设置密码，其他主机的客户端会被拒绝（保护模式）：请设置 --requirepass-file。"`
	OpenPage        string `en:"Other hosts can read this page without a password: set --metrics-token-file." zh:"其他主机无需密码即可查看本页：请设置 --metrics-token-file。"`
	UnencryptedPage string `en:"The password of this page crosses the network unencrypted: set --metrics-tls-cert and --metrics-tls-key." zh:"本页的密码在网络上明文传输：请设置 --metrics-tls-cert 和 --metrics-tls-key。"`

	NowHeading     string `en:"Now" zh:"当前"`
	HistoryHeading string `en:"History" zh:"历史"`
	TopHeading     string `en:"Hot keys" zh:"热点 Key"`
	Waiting        string `en:"The first values appear in a few seconds." zh:"几秒后显示数据。"`
	Summary        string `en:"%s allowed and %s limited decisions per second, %s connections, %s keys, %s of memory." zh:"放行 %s 次/秒，限流 %s 次/秒，%s 个连接，%s 个 Key，内存 %s。"`
	Of             string `en:"of %s" zh:"/ %s"`
	ShareTitle     string `en:"%s limited" zh:"限流 %s"`
	Range          string `en:"Time range of the charts" zh:"图表的时间范围"`
	WholeRange     string `en:"Whole range" zh:"显示全部"`

	DecisionsPerSec string `en:"Decisions per second" zh:"判定次数/秒"`
	Allowed         string `en:"allowed" zh:"放行"`
	Limited         string `en:"limited" zh:"限流"`
	LimitedShare    string `en:"Share limited" zh:"限流比例"`
	AllowedPerSec   string `en:"Allowed per second" zh:"放行/秒"`
	LimitedPerSec   string `en:"Limited per second" zh:"限流/秒"`
	Latency         string `en:"Latency" zh:"延迟"`
	LatencyP99      string `en:"P99 latency" zh:"P99 延迟"`
	P50             string `en:"P50" zh:"P50"`
	P99             string `en:"P99" zh:"P99"`
	P999            string `en:"P99.9" zh:"P99.9"`
	Connections     string `en:"Connections" zh:"连接数"`
	Keys            string `en:"Keys" zh:"Key 数量"`
	Memory          string `en:"Memory" zh:"内存"`
	Evicted         string `en:"Keys evicted per second" zh:"淘汰 Key/秒"`
	Refused         string `en:"New keys refused per second" zh:"拒绝新 Key/秒"`
	NotStored       string `en:"Keys evicted or refused per second" zh:"淘汰或拒绝的 Key/秒"`
	EvictedKeys     string `en:"keys evicted" zh:"淘汰的 Key"`
	RefusedKeys     string `en:"new keys refused at the memory limit" zh:"内存不足而拒绝的新 Key"`
	ErrorsPerSec    string `en:"Errors per second" zh:"错误返回/秒"`
	LastError       string `en:"Last error" zh:"最近一次错误"`
	MemoryFull      string `en:"Memory is full." zh:"内存已满。"`
	MemoryEvicts    string `en:"Keys are evicted before they expire and get their full burst again." zh:"Key 在过期之前被淘汰，被淘汰的 Key 重新获得全部突发额度。"`
	MemoryRefuses   string `en:"Calls with new keys are refused with -OOM." zh:"新 Key 的请求将返回 -OOM。"`

	Durability        string `en:"Durability" zh:"持久化"`
	DurabilityOff     string `en:"off" zh:"关闭"`
	SyncEvery         string `en:"every %s" zh:"每 %s"`
	SyncBeforeReplies string `en:"before each reply" zh:"每次返回之前"`
	SyncBySystem      string `en:"left to the system" zh:"由操作系统决定"`
	LoadingPart       string `en:"loading, %s" zh:"加载中，%s"`
	FaultFor          string `en:"fault for %s" zh:"故障已持续 %s"`
	FaultSince        string `en:"Changes have not reached the disk since %s." zh:"自 %s 起，变更未能写入磁盘。"`
	FaultForgets      string `en:"Decisions continue, but these changes are lost if the server stops now." zh:"判定照常进行；如果服务器此时退出，这些变更会丢失。"`
	FaultRefuses      string `en:"Calls that would change a key are refused with -MISCONF." zh:"会改变 Key 的请求将返回 -MISCONF。"`
	Sync              string `en:"Synced to disk" zh:"写盘时机"`
	LastSync          string `en:"Last sync took" zh:"最近一次写盘耗时"`
	Written           string `en:"Written since the start" zh:"启动以来写入"`
	WrittenPerSec     string `en:"Written to disk per second" zh:"写盘/秒"`
	LogSize           string `en:"Log" zh:"日志"`
	Snapshot          string `en:"Snapshot" zh:"快照"`
	LastSnapshot      string `en:"Last snapshot" zh:"最近一次快照"`
	Saving            string `en:"being written" zh:"正在写入"`
	SaveFailed        string `en:"failed: %s" zh:"失败：%s"`
	WaitingReplies    string `en:"Replies waiting for a sync" zh:"等待写盘的返回"`
	Faults            string `en:"Faults since the start" zh:"启动以来的故障"`
	Never             string `en:"none since the start" zh:"启动以来没有"`
	Ago               string `en:"%s ago" zh:"%s前"`

	Store           string `en:"Store" zh:"存储"`
	StoreConnecting string `en:"connecting" zh:"连接中"`
	StoreAnswers    string `en:"answers" zh:"正常"`
	StorePartly     string `en:"%d of %d servers of the store answer" zh:"%d / %d 台存储服务器有响应"`
	StoreDownFor    string `en:"no answer for %s" zh:"无响应已 %s"`
	StoreDownSince  string `en:"The store has not answered since %s." zh:"自 %s 起，存储无响应。"`
	Stop            string `en:"." zh:"。"`
	StoreErrors     string `en:"Calls it cannot decide get an error." zh:"存储未能判定的请求会返回错误。"`
	StoreAllows     string `en:"Calls it cannot decide are allowed and not counted." zh:"存储未能判定的请求一律放行，且不计数。"`
	StoreDenies     string `en:"Calls it cannot decide are limited." zh:"存储未能判定的请求一律限流。"`
	StoreLocal      string `en:"Calls it cannot decide are decided in this server's memory, by its share of their limits." zh:"存储未能判定的请求由本服务器在内存中按所占的限额份额判定。"`
	ByPolicy        string `en:"Decided without the store, per second" zh:"未经存储判定/秒"`
	StoreNote       string `en:"%s. Of %s requests since the start, %s were sent to it in %s script calls, %s were denied by a state just read, and %s left to --on-store-error=%s." zh:"%s。启动以来共 %s 个请求，其中 %s 个发往存储，合并为 %s 次脚本调用；%s 个按刚读到的状态直接限流，%s 个按 --on-store-error=%s 处理。"`
	StoreScroll     string `en:"Table of the store's servers" zh:"存储服务器列表"`
	StoreServer     string `en:"server" zh:"服务器"`
	Circuit         string `en:"state" zh:"状态"`
	CircuitOpen     string `en:"fails, paused" zh:"故障，暂停请求"`
	CircuitHalfOpen string `en:"being tried" zh:"试探中"`
	Queued          string `en:"keys queued" zh:"排队的 Key"`
	InFlight        string `en:"pipelines in flight" zh:"未应答的 pipeline"`
	RoundTrip       string `en:"Round trip" zh:"往返时间"`
	DecidedHere     string `en:"Decided without asking the store, per second" zh:"未询问存储的判定/秒"`
	FromKnown       string `en:"by a state just read" zh:"刚读到的状态"`
	FromPolicy      string `en:"by --on-store-error" zh:"按 --on-store-error"`

	Replication     string `en:"Replication" zh:"复制"`
	Role            string `en:"Role" zh:"角色"`
	RoleLeader      string `en:"leader" zh:"主节点"`
	RoleReplica     string `en:"replica of %s" zh:"%s 的副本"`
	ReplicaNotice   string `en:"This server is a replica and answers only calls that change nothing. Others get -READONLY: send them to the leader, %s." zh:"本服务器是副本，只应答不改变任何 Key 的请求；其他请求返回 -READONLY，请发往主节点 %s。"`
	ReplicaSyncing  string `en:"It is taking all states from the leader, %s so far. Until it has them, it answers from its old states and cannot take over." zh:"正在从主节点获取全部状态，已收到 %s。完成之前按旧状态应答，且不能接替主节点。"`
	LinkDownSince   string `en:"This replica has had no link to its leader since %s." zh:"自 %s 起，本副本与主节点的连接中断。"`
	LinkDownForgets string `en:"It answers from older states. If it takes over, what was charged since is forgiven." zh:"目前按旧状态应答；如果由它接替主节点，此后的扣减会丢失。"`
	TooFewReplicas  string `en:"Too few replicas keep up." zh:"跟得上的副本数量不足。"`
	TooFewRefuses   string `en:"Calls that would change a key are refused with -NOREPLICAS." zh:"会改变 Key 的请求将返回 -NOREPLICAS。"`
	TooFewGood      string `en:"%d of the %d replicas that --min-replicas-to-write requires keep up." zh:"跟得上的副本有 %d 个，--min-replicas-to-write 要求 %d 个。"`
	Replicas        string `en:"Replicas" zh:"副本数"`
	Replica         string `en:"replica" zh:"副本"`
	ReplicaScroll   string `en:"Table of the replicas" zh:"副本列表"`
	ReplicationLag  string `en:"Replication lag" zh:"复制延迟"`
	Lag             string `en:"lag" zh:"延迟"`
	LagBytes        string `en:"not acknowledged" zh:"未确认"`
	LeaderLink      string `en:"Link to the leader" zh:"与主节点的连接"`
	LinkDown        string `en:"down" zh:"中断"`
	LinkConnected   string `en:"up" zh:"正常"`
	FullSync        string `en:"full sync" zh:"全量同步"`
	ReplicaFollows  string `en:"follows" zh:"同步中"`
	ReplicaWaits    string `en:"waits for a full sync" zh:"等待全量同步"`
	StreamApplied   string `en:"Applied of the stream of changes" zh:"已应用的变更流"`
	StreamGathered  string `en:"Stream of changes" zh:"变更流"`
	Backlog         string `en:"Backlog" zh:"积压缓冲区"`
	FullSyncsTaken  string `en:"Full syncs since the start" zh:"启动以来的全量同步"`
	FullSyncsGiven  string `en:"Full syncs given since the start" zh:"启动以来提供的全量同步"`
	PartialSyncs    string `en:"Continued from the backlog" zh:"从积压缓冲区续传"`
	ReplicasEvicted string `en:"Replicas evicted for being slow" zh:"因过慢而断开的副本"`
	LeaderChange    string `en:"Planned changes of leader" zh:"计划内切换"`
	HandingOver     string `en:"under way" zh:"进行中"`
	HandoverCount   string `en:"%s, of which %s failed" zh:"%s 次，其中 %s 次失败"`

	TableSummary string `en:"The same data as a table" zh:"以表格显示"`
	TableCaption string `en:"Each row is one minute: the mean of decisions per second, the maximum of everything else." zh:"每行为一分钟：判定次数取每秒平均值，其余取最大值。"`
	Minute       string `en:"Minute (UTC)" zh:"时间（UTC）"`
	TableScroll  string `en:"Table of the last 15 minutes" zh:"最近 15 分钟的表格"`

	FirstCall    string `en:"No calls yet. Try one:" zh:"还没有收到请求。试一试："`
	KindsHeading string `en:"Decisions by command" zh:"各命令的判定次数"`
	KindsScroll  string `en:"Table of decisions by command" zh:"各命令判定次数的表格"`
	DoorsHeading string `en:"HTTP and Envoy" zh:"HTTP 与 Envoy"`
	DoorsScroll  string `en:"Table of requests over HTTP and gRPC" zh:"HTTP 与 gRPC 请求的表格"`
	Door         string `en:"Protocol" zh:"协议"`
	DoorRefused  string `en:"Refused" zh:"已拒绝"`
	DoorFailed   string `en:"Failed" zh:"失败"`
	Command      string `en:"command" zh:"命令"`

	EnvoyHeading   string `en:"Limits for Envoy" zh:"Envoy 限额"`
	EnvoySource    string `en:"Source" zh:"来源"`
	EnvoyFiles     string `en:"files in %s" zh:"目录 %s 中的文件"`
	EnvoyXDS       string `en:"xDS server %s" zh:"xDS 服务器 %s"`
	EnvoyNone      string `en:"none: nothing is limited" zh:"无：不限制任何请求"`
	EnvoyDomains   string `en:"Domains" zh:"域"`
	EnvoyRules     string `en:"Rules" zh:"规则"`
	EnvoyNotLoaded string `en:"none yet" zh:"尚无"`
	EnvoyKept      string `en:"%s, kept before the start" zh:"%s，启动前保存"`
	EnvoySince     string `en:"In use since" zh:"启用于"`
	EnvoyLink      string `en:"Connection" zh:"连接"`
	EnvoyAccepted  string `en:"Versions accepted" zh:"接受的版本"`
	EnvoyRejected  string `en:"Answers rejected" zh:"拒绝的应答"`

	LimitsHeading string `en:"Named limits" zh:"命名限额"`
	LimitsScroll  string `en:"Table of the named limits" zh:"命名限额的表格"`
	Limit         string `en:"limit" zh:"限额"`
	Rules         string `en:"rules" zh:"规则"`
	Shadow        string `en:"shadow" zh:"影子"`

	InUnits     string `en:"%s" zh:"%s 个"`
	AtOnce      string `en:"%s at once" zh:"一次最多 %s"`
	Blocks      string `en:"then blocked for %s" zh:"超出后封禁 %s"`
	PerSecond   string `en:"%s per second" zh:"每秒 %s"`
	PerMinute   string `en:"%s per minute" zh:"每分钟 %s"`
	PerHour     string `en:"%s per hour" zh:"每小时 %s"`
	PerDay      string `en:"%s per day" zh:"每天 %s"`
	PerPeriod   string `en:"%s per %s" zh:"%s / %s"`
	Fixed       string `en:"fixed" zh:"固定窗口"`
	Sliding     string `en:"sliding" zh:"滑动窗口"`
	Approximate string `en:"approximate" zh:"近似滑动窗口"`
	ASecond     string `en:"%s a second" zh:"每个自然秒 %s"`
	AMinute     string `en:"%s a minute" zh:"每个自然分钟 %s"`
	AnHour      string `en:"%s an hour" zh:"每个自然小时 %s"`
	ADay        string `en:"%s a day" zh:"每个自然日 %s"`
	AWeek       string `en:"%s a week" zh:"每个自然周 %s"`
	AMonth      string `en:"%s a month" zh:"每个自然月 %s"`
	AYear       string `en:"%s a year" zh:"每个自然年 %s"`
	InZone      string `en:" (%s)" zh:"（%s）"`
	SinceEpoch  string `en:"since 1970" zh:"自 1970 年起"`
	FromStart   string `en:"from %s" zh:"%s起"`
	DayOfMonth  string `en:"day %s" zh:"%s 日"`
	Weekdays    string `en:"Monday Tuesday Wednesday Thursday Friday Saturday Sunday" zh:"周一 周二 周三 周四 周五 周六 周日"`
	Denied      string `en:"denied" zh:"全部限流"`
	Unlimited   string `en:"unlimited" zh:"不限"`

	CapacityHeading    string `en:"Capacity" zh:"容量"`
	CapacityScroll     string `en:"Table of bounded resources" zh:"有上限的资源列表"`
	Resource           string `en:"resource" zh:"资源"`
	InUse              string `en:"in use" zh:"已用"`
	Maximum            string `en:"maximum" zh:"上限"`
	TableMemory        string `en:"Memory of limiters" zh:"限流 Key 占用的内存"`
	ClientMemory       string `en:"Memory of clients" zh:"客户端占用的内存"`
	RefusalsNote       string `en:"Refused or ended at a limit since the start:" zh:"启动以来因达到上限而拒绝或终止："`
	ConnectionsRefused string `en:"connections refused" zh:"拒绝的连接"`
	NewKeysRefused     string `en:"new keys refused by rate" zh:"新建过快而拒绝的 Key"`
	ScriptsEnded       string `en:"scripts ended" zh:"终止的脚本"`
	LogLinesLost       string `en:"log lines dropped" zh:"丢弃的日志行"`

	ValueMemory   string `en:"Memory of values" zh:"值占用的内存"`
	ValuesFull    string `en:"The memory for values is full." zh:"值的内存已满。"`
	ValuesEvicts  string `en:"Values are evicted before they expire, and evicted counters start again at 0." zh:"值在过期之前被淘汰，被淘汰的计数器从 0 重新开始。"`
	ValuesRefuses string `en:"Calls that need more memory for values are refused with -OOM." zh:"需要更多内存存放值的请求将返回 -OOM。"`
	ValuesNote    string `en:"%s of the keys are values, of which %s never expire." zh:"其中值 %s 个，永不过期的 %s 个。"`

	EvictedValues string `en:"values evicted" zh:"淘汰的值"`
	RefusedValues string `en:"values refused at their memory limit" zh:"内存不足而拒绝的值"`
	IsValue       string `en:"A value: no limiter decides on this key" zh:"这是一个值：没有限流器使用该 Key"`
	Number        string `en:"number" zh:"数值"`
	TextLength    string `en:"length" zh:"长度"`
	Bytes         string `en:"%s bytes" zh:"%s 字节"`
	Expires       string `en:"expires" zh:"过期"`
	NoTime        string `en:"never" zh:"永不"`

	RefusedHeading  string `en:"Commands refused" zh:"拒绝的命令"`
	RefusedNote     string `en:"Clients send commands that this server does not have. Some libraries take the error for \"allowed\" and limit nobody." zh:"客户端发送了本服务器没有的命令。有些库会把错误当作放行，因而不再限流。"`
	RefusedScroll   string `en:"Table of refused commands" zh:"拒绝的命令的表格"`
	RefusedCalls    string `en:"calls" zh:"次数"`
	UnknownCommands string `en:"unknown commands" zh:"未知的命令"`

	// Faults and their signs:
	Warning     string `en:"Warning" zh:"警告"`
	Critical    string `en:"Critical" zh:"严重"`
	MoreFaults  string `en:"and %d more" zh:"另有 %d 项"`
	Runbook     string `en:"Runbook: %s" zh:"处理手册（英文）：%s"`
	BackToPage  string `en:"Back to the live page" zh:"返回实时状态"`
	Counted     string `en:"%s within the last %d minutes." zh:"共 %s 次（最近 %d 分钟）。"`
	Started     string `en:"started" zh:"启动"`
	Restarted   string `en:"restarted" zh:"重启"`
	Paused      string `en:"Paused: figures as of" zh:"已暂停，数据截至"`
	PausedTitle string `en:"Paused" zh:"已暂停"`

	DiskDo        string `en:"Free space on the disk, or repair it. The server tries again every few seconds: do not restart it." zh:"请释放磁盘空间或修复磁盘。服务器每隔几秒重试，请勿重启。"`
	DiskSlow      string `en:"The disk does not keep up with the changes." zh:"磁盘写入跟不上变更。"`
	DiskSlowDo    string `en:"Find what else writes to this disk." zh:"请查明还有什么程序在写该磁盘。"`
	SnapshotFails string `en:"The last snapshot failed." zh:"最近一次快照失败。"`
	SnapshotGrows string `en:"Nothing is lost, but the log grows until one succeeds." zh:"没有丢失数据，但日志会不断增长，直到快照成功。"`
	SnapshotDo    string `en:"Make room for a second snapshot. The server tries again every minute." zh:"请为第二份快照腾出空间。服务器每分钟重试。"`

	StoreDo       string `en:"Check that the store is up and reachable from here. A restart of this server does not help." zh:"请检查存储是否运行、能否从本机访问。重启本服务器没有帮助。"`
	StoreServerDo string `en:"Check the server that is away, and the way to it: the table below names it." zh:"请检查无响应的服务器及网络，见下方列表。"`
	StoreFails    string `en:"More than %s of the calls were not decided by the store." zh:"超过 %s 的请求未由存储判定。"`
	StoreFailsDo  string `en:"Compare its round trip with --store-timeout; the log has the reasons." zh:"请比较往返时间与 --store-timeout；原因见日志。"`

	TooFewDo   string `en:"Repair or add replicas. If another server leads, send the clients there." zh:"请修复或增加副本；如果另一台服务器已成为主节点，请让客户端连接那一台。"`
	LinkDownDo string `en:"Check that the leader is up and reachable from here." zh:"请检查主节点是否运行、能否从本机访问。"`
	Lags       string `en:"A replica is more than %s behind." zh:"副本落后超过 %s。"`
	LagForgets string `en:"If the leader crashed now, what was charged in that time would be forgiven." zh:"如果主节点此时崩溃，这段时间的扣减会丢失。"`
	LagDo      string `en:"Check the replica's machine, network and disk." zh:"请检查副本的机器、网络和磁盘。"`
	LagNow     string `en:"It is %s behind." zh:"目前落后 %s。"`

	HandoverLate    string `en:"A planned change of leader failed." zh:"计划内的主节点切换失败。"`
	HandoverForgets string `en:"The leader leads on, or it was silent, and what the new one had not received is forgiven." zh:"原主节点继续工作；如果它没有响应，新主节点尚未收到的扣减会丢失。"`
	HandoverDo      string `en:"Nothing has to be repaired; the log says why." zh:"无需修复，原因见日志。"`
	PeerLeads       string `en:"The other server of the pair leads, too." zh:"另一台服务器也是主节点。"`
	PeerLeadsMeans  string `en:"Clients of each are charged apart, and have up to twice their limits." zh:"两台各自扣减，客户端最多可用两倍限额。"`
	PeerLeadsDo     string `en:"Decide which one's states to keep, and send REPLICAOF to the other one, whose own are replaced." zh:"请决定保留哪一台的状态，并对另一台执行 REPLICAOF，其状态将被替换。"`

	CannotConnect         string `en:"Clients cannot connect." zh:"客户端无法连接。"`
	CannotConnectMeans    string `en:"Connections are refused at --maxclients or --maxclients-per-address, or by protected mode." zh:"连接因 --maxclients、--maxclients-per-address 或保护模式被拒绝。"`
	CannotConnectDo       string `en:"Find the client that opens so many, or raise the limit; against protected mode, set a password." zh:"请查明哪个客户端打开了大量连接，或提高上限；如因保护模式，请设置密码。"`
	ConnectionsShort      string `en:"More than %s of --maxclients are connected." zh:"连接数超过 --maxclients 的 %s。"`
	ConnectionsShortMeans string `en:"At 100 % new clients are refused." zh:"达到 100 % 时拒绝新客户端。"`
	ConnectionsShortDo    string `en:"Find the client that leaks connections (CLIENT LIST), or raise maxclients." zh:"请用 CLIENT LIST 查明哪个客户端泄漏连接，或提高 maxclients。"`
	ErrorsMany            string `en:"Calls get error replies, more than %s a second." zh:"请求收到错误返回，每秒超过 %s 次。"`
	ErrorsMeans           string `en:"Some libraries take an error for \"allowed\", and then limit nobody." zh:"有些库会把错误当作放行，因而不再限流。"`
	ErrorsDo              string `en:"The last error below has the call and its client." zh:"下方的最近一次错误含有请求及其客户端。"`
	LatencyLong           string `en:"Calls are slow." zh:"请求变慢。"`
	LatencyMeans          string `en:"The slowest 1 % take more than %s within the server." zh:"最慢的 1 % 在服务器内耗时超过 %s。"`
	LatencyDo             string `en:"SLOWLOG GET 10 shows slow calls and their clients. Check the processors and scripts, too." zh:"SLOWLOG GET 10 列出慢请求及其客户端；请同时检查处理器和脚本。"`
	Passwords             string `en:"Wrong passwords arrive." zh:"收到错误的密码。"`
	PasswordsMeans        string `en:"A client has an old password, or somebody guesses." zh:"某个客户端使用旧密码，或有人在猜测密码。"`
	PasswordsDo           string `en:"ACL LOG shows addresses and users." zh:"ACL LOG 列出地址和用户。"`
	ScriptsEnd            string `en:"Scripts are ended at a limit." zh:"脚本因达到上限被终止。"`
	ScriptsEndMeans       string `en:"Their callers get an error." zh:"调用者收到错误。"`
	ScriptsEndDo          string `en:"Shorten the script, or raise --lua-time-limit." zh:"请缩短脚本，或提高 --lua-time-limit。"`
	NewKeys               string `en:"Calls with new keys are refused by --max-new-keys-per-second." zh:"新 Key 的请求因 --max-new-keys-per-second 被拒绝。"`
	NewKeysMeans          string `en:"Their callers get an error; existing keys are not affected." zh:"调用者收到错误；已有的 Key 不受影响。"`
	NewKeysDo             string `en:"Find the client that creates so many keys." zh:"请查明哪个客户端创建了大量 Key。"`
	FileRefused           string `en:"The changed file of limits was refused." zh:"修改后的限额文件被拒绝。"`
	FileRefusedMeans      string `en:"The previous limits stay in use, but the server would not start with the file." zh:"原有限额继续生效，但服务器无法用该文件启动。"`
	FileRefusedDo         string `en:"The log names each wrong line. Correct them and reload." zh:"日志列出每处错误，请更正后重新加载。"`
	XDSAway               string `en:"The xDS server that gives the limits for Envoy is not connected." zh:"提供 Envoy 限额的 xDS 服务器未连接。"`
	XDSAwayMeans          string `en:"The last limits stay in use; changes are not seen." zh:"最后一份限额继续生效；看不到改动。"`
	XDSAwayStale          string `en:"The limits kept before the start are in use; changes since are not seen." zh:"正在使用启动前保存的限额；看不到此后的改动。"`
	XDSNone               string `en:"There are no limits for Envoy yet: its calls get an error." zh:"目前还没有 Envoy 限额，其请求返回错误。"`
	XDSAwayDo             string `en:"Check the server, --envoy-xds and its TLS flags. It is tried again by itself." zh:"请检查该服务器、--envoy-xds 及其 TLS 参数。会自动重试。"`
	XDSRejected           string `en:"The xDS server's latest limits for Envoy were rejected." zh:"xDS 服务器最新的 Envoy 限额被拒绝。"`
	XDSRejectedMeans      string `en:"The previous limits stay in use." zh:"原有限额继续生效。"`
	XDSRejectedDo         string `en:"Correct them where the xDS server has them from." zh:"请在 xDS 服务器的配置来源处更正。"`
	LimitsDiffer          string `en:"Named limits of this replica are not its leader's." zh:"本副本的命名限额与主节点不一致。"`
	LimitsDifferMeans     string `en:"It would decide by its own once it leads." zh:"它成为主节点后会按自己的限额判定。"`
	LimitsDifferDo        string `en:"Give both servers the same file of limits, and send CL.LIMIT RELOAD to both." zh:"请让两台服务器使用同样的限额文件，并对两台都执行 CL.LIMIT RELOAD。"`
	Panics                string `en:"A bug of the server closed a connection." zh:"服务器的缺陷导致连接关闭。"`
	PanicsMeans           string `en:"Other clients were not affected." zh:"其他客户端不受影响。"`
	PanicsDo              string `en:"The log has the stack: please report it." zh:"堆栈见日志，请报告。"`
	LogLost               string `en:"Lines of the log are lost." zh:"日志行丢失。"`
	LogLostMeans          string `en:"Clients are not affected." zh:"客户端不受影响。"`
	LogLostDo             string `en:"Check what reads the log, and scripts that write to it." zh:"请检查读取日志的程序，以及写日志的脚本。"`

	LimitersShort    string `en:"More than %s of the memory for limiters is in use." zh:"限流 Key 的内存已用超过 %s。"`
	MemoryShortMeans string `en:"At 100 % new ones evict others, or are refused." zh:"达到 100 % 时，新的会淘汰其他的，或被拒绝。"`
	LimitersShortDo  string `en:"Raise --maxmemory, or find the client that creates the keys." zh:"请增大 --maxmemory，或查明哪个客户端创建了这些 Key。"`
	ValuesShort      string `en:"More than %s of the memory for values is in use." zh:"值的内存已用超过 %s。"`
	ValuesShortDo    string `en:"Raise --maxmemory-values, or shorten times to live." zh:"请增大 --maxmemory-values，或缩短过期时间。"`
	ValuesRefusedDo  string `en:"Raise --maxmemory-values, or set --require-ttl: values that never expire are not evicted." zh:"请增大 --maxmemory-values，或设置 --require-ttl：永不过期的值不会被淘汰。"`
	ProcessLarge     string `en:"The process uses more memory than --maxmemory." zh:"进程占用的内存超过 --maxmemory。"`
	ProcessDo        string `en:"Check the memory of clients below (CLIENT LIST has each), or raise --maxmemory." zh:"请检查下方客户端占用的内存（CLIENT LIST 列出每个客户端），或增大 --maxmemory。"`

	// The search, the drawer, and the tables that lead to it:
	Find       string `en:"Key or named limit" zh:"Key 或命名限额"`
	FindHint   string `en:"Find a key or a limit" zh:"查找 Key 或命名限额"`
	FindButton string `en:"Find" zh:"查找"`
	KeyHint    string `en:"A key, a named limit, or a whole call such as cl.throttle user:1 15 30 60. A key in double quotes can contain escapes: \"a\\x00\\xff\"." zh:"Key、命名限额，或完整的命令，例如 cl.throttle user:1 15 30 60。双引号中的 Key 可以包含转义字符：\"a\\x00\\xff\"。"`
	Close      string `en:"Close" zh:"关闭"`
	LimitTitle string `en:"Limit %s" zh:"命名限额 %s"`
	NoAnswer   string `en:"No answer" zh:"无法查看"`

	Key              string `en:"Key" zh:"Key"`
	KeyMissing       string `en:"Enter a key, or \"\" for the empty key." zh:"请填写 Key；空 Key 写作 \"\"。"`
	KeyQuotes        string `en:"A key that begins with a double quote must end with one; write \\\" for quotes inside it." zh:"以双引号开头的 Key 必须以双引号结尾，其中的双引号写作 \\\"。"`
	KeyTooLong       string `en:"The key is longer than %d bytes, the maximum of this server." zh:"Key 超过 %d 字节，这是本服务器允许的最大长度。"`
	Database         string `en:"Database" zh:"数据库"`
	DatabaseTooLarge string `en:"The database must be from 0 to %d." zh:"数据库编号须在 0 到 %d 之间。"`
	AlsoIn           string `en:"Also in database %d" zh:"数据库 %d 中也有"`

	NumberTooSmall string `en:"It must be at least %s." zh:"不能小于 %s。"`
	ZeroRate       string `en:"This would not limit anything: count and period must be at least 1, and count at most one per nanosecond." zh:"这样不会有任何限制：count 和 period 至少为 1，且 count 不得超过每纳秒一个。"`
	TooSlow        string `en:"This funnel would take more than 146 years to drain: enter a smaller max_burst or period, or a larger count." zh:"这个漏斗需要 146 年以上才能漏空：请减小 max_burst 或 period，或增大 count。"`
	TooLong        string `en:"This window would be longer than 146 years: enter a smaller period." zh:"这个窗口超过 146 年：请减小 period。"`
	WrongKind      string `en:"The key is of another kind than this limit: calls get WRONGTYPE." zh:"该 Key 的类型与此限额不符：请求会得到 WRONGTYPE。"`
	StoreDown      string `en:"The store did not answer in time. Looking changes nothing: try again." zh:"存储未及时响应。查看不会改变任何数据，请重试。"`
	LimitUnknown   string `en:"There is no limit of this name." zh:"没有此名称的命名限额。"`

	NoSuchKey         string `en:"No such key: nothing is charged to it" zh:"没有这个 Key：没有任何扣减"`
	NoSuchKeyHint     string `en:"To see how its next call would be decided, enter the whole call, such as cl.throttle user:1 15 30 60." zh:"若要查看下一次请求的判定，请填写完整的命令，例如 cl.throttle user:1 15 30 60。"`
	Alike             string `en:"Keys with this in their name" zh:"名称中含有它的 Key"`
	LimitNotKnown     string `en:"The limit is not known" zh:"限额未知"`
	LimitNotKnownHint string `en:"The server stores a key's state but not its limit, and the key is not among the most requested now. Enter a whole call, such as cl.throttle user:1 15 30 60." zh:"服务器只保存 Key 的状态，不保存限额，而该 Key 目前不在请求最多的 Key 之中。请填写完整的命令，例如 cl.throttle user:1 15 30 60。"`
	LimitGoneHint     string `en:"The named limit that the key was charged under is not defined now." zh:"该 Key 所属的命名限额目前没有定义。"`
	NoState           string `en:"The server has no state for this key: nothing is charged to it." zh:"服务器没有该 Key 的状态：没有任何扣减。"`

	AllowedNow           string `en:"Allowed: %s at once" zh:"放行：一次最多 %s"`
	LimitedFor           string `en:"Limited; allowed in %s" zh:"限流；%s 后放行"`
	LimitedAlways        string `en:"Limited; waiting does not help" zh:"限流；等待无效"`
	LimitedUntilFilled   string `en:"Limited until it is filled" zh:"限流；补充后放行"`
	LimitedUntilReleased string `en:"Limited until a place is released or its lease ends" zh:"限流；释放名额或租约到期后放行"`
	ShadowedNext         string `en:"The limit is a shadow, else the next call would be limited." zh:"这是影子限额，否则下一次请求会被限流。"`
	ByLimit              string `en:"By the named limit" zh:"命名限额"`
	ByOverride           string `en:"An override decides:" zh:"由覆盖规则判定："`
	LimitOfLink          string `en:"By the limit in the URL." zh:"按本页网址中的限额。"`
	LimitOfLastCall      string `en:"By the limit of its last call." zh:"按最近一次请求的限额。"`
	LinkToKey            string `en:"Link to this key" zh:"此 Key 的链接"`
	LinkToLimit          string `en:"Link to this limit" zh:"此命名限额的链接"`

	FunnelPicture  string `en:"A funnel that is %s full: %s." zh:"漏斗已满 %s：%s。"`
	BucketPicture  string `en:"A bucket that is %s full: %s." zh:"桶中有 %s：%s。"`
	WindowPicture  string `en:"A window of which %s is used: %s." zh:"窗口已用 %s：%s。"`
	PlacesPicture  string `en:"Places of which %s are taken: %s." zh:"名额已占用 %s：%s。"`
	UnitsOf        string `en:"%s of %s units" zh:"%s / %s 单位"`
	AmountOf       string `en:"%s of %s" zh:"%s / %s"`
	LeakRate       string `en:"%s every %s" zh:"%s / %s"`
	In             string `en:"in %s" zh:"%s 后"`
	Now            string `en:"now" zh:"现在"`
	Level          string `en:"Level" zh:"水位"`
	Used           string `en:"Used" zh:"已用"`
	Leak           string `en:"Leak rate" zh:"漏出速率"`
	UntilFree      string `en:"One unit available" zh:"可用一个单位"`
	UntilEmpty     string `en:"Empty" zh:"漏空"`
	Available      string `en:"Available" zh:"可用"`
	BlockEnds      string `en:"Block ends" zh:"封禁结束"`
	ResetAfter     string `en:"Nothing used" zh:"全部恢复"`
	Kind           string `en:"Kind" zh:"类型"`
	UnitsStored    string `en:"Units" zh:"单位"`
	ReplyHeading   string `en:"%s with quantity 1 would reply" zh:"%s 在 quantity 为 1 时将返回"`
	Course         string `en:"Last minutes" zh:"最近几分钟"`
	CourseText     string `en:"In %s about %s calls, of which %s limited" zh:"%s内约 %s 次请求，其中限流 %s 次"`
	CourseUnknown  string `en:"Not known: only the most requested keys are followed." zh:"未知：只跟踪请求最多的 Key。"`
	CourseSoon     string `en:"Not known yet: calls are counted every ten seconds." zh:"暂无数据：每 10 秒统计一次。"`
	Rule           string `en:"rule" zh:"规则"`
	Together       string `en:"together" zh:"合计"`
	RulesSince     string `en:"Rules, with their counts since the limit was defined" zh:"规则，及自定义以来的次数"`
	ShadowNote     string `en:"This limit is a shadow: it denies nothing, and counts what it would have limited." zh:"这是影子限额：并不限流，只统计本应限流的次数。"`
	OverNote       string `en:"%s of the limited calls were debits, charged beyond the limit." zh:"限流的次数中，%s 次为超额扣减。"`
	OverriddenNote string `en:"%s of all calls were decided by an override." zh:"全部次数中，%s 次由覆盖规则判定。"`
	Busiest        string `en:"Busiest keys" zh:"请求最多的 Key"`
	Overrides      string `en:"overrides" zh:"覆盖规则"`
	NoOverrides    string `en:"None." zh:"没有。"`
	MoreOverrides  string `en:"%s more: CL.LIMIT OVERRIDES %s" zh:"另有 %s 个：CL.LIMIT OVERRIDES %s"`
	ByFile         string `en:"file" zh:"文件"`
	SetBy          string `en:"set by" zh:"来源"`
	Ends           string `en:"ends" zh:"结束"`

	TopNone     string `en:"No key stands out." zh:"没有突出的 Key。"`
	TopNote     string `en:"Rates cover the last 10 seconds, with the error of an estimate, and shares all calls of the last minutes; – means not known yet. Select a key to see its limiter." zh:"速率按最近 10 秒计算，估计值附带误差；占比为最近几分钟全部请求中的占比；– 表示暂无数据。点击 Key 可查看其限流器。"`
	PerSec      string `en:"calls per second" zh:"请求/秒"`
	LimitedRate string `en:"limited per second" zh:"限流/秒"`
	Share       string `en:"share of all calls" zh:"占全部请求"`
	ShareBar    string `en:"share, with the limited part" zh:"占比及限流部分"`
	KindsNote   string `en:"Counts since the start. CL.THROTTLE includes CL.TOKENBUCKET, CL.DEBIT, CL.RESERVE and CL.BTHROTTLE, whose keys are funnels, too." zh:"启动以来的次数。CL.THROTTLE 包括 CL.TOKENBUCKET、CL.DEBIT、CL.RESERVE 和 CL.BTHROTTLE：它们的 Key 也是漏斗。"`
	LimitsNote  string `en:"The share of the last five minutes that was limited, and that was allowed near the limit (by default from 80 % on). A shadow limits nothing: its share is what it would have limited." zh:"最近五分钟的限流比例，以及接近限额（默认 80 %）而放行的比例。影子限额并不限流，其比例为本应限流的部分。"`
	LimitsMore  string `en:"And %d more; CL.LIMIT LIST has all." zh:"另有 %d 个命名限额；完整列表见 CL.LIMIT LIST。"`
	RuleCount   string `en:"all of %s rules" zh:"同时满足 %s 条规则"`
	Near        string `en:"near" zh:"接近"`
	FiveMinutes string `en:"5 minutes" zh:"5 分钟"`
	Filter      string `en:"Filter by name" zh:"按名称筛选"`
	NoneMatches string `en:"No limit has this in its name." zh:"没有名称匹配的命名限额。"`
	Fold        string `en:"Show only ten" zh:"只显示 10 个"`
	Unfold      string `en:"Show %d more" zh:"再显示 %d 个"`
	APeriod     string `en:"%s a window of the calendar" zh:"每个自然窗口 %s"`

	// What is held and spent:
	Holds           string `en:"Holds" zh:"预扣"`
	HoldsOf         string `en:"%s, holds: %s" zh:"%s，共 %s 笔"`
	Held            string `en:"held" zh:"预扣中"`
	Settled         string `en:"settled" zh:"已结算"`
	NotSettled      string `en:"not settled" zh:"未结算"`
	Overdue         string `en:"overdue" zh:"过期未结算"`
	OverdueSince    string `en:"overdue for" zh:"已过期"`
	Age             string `en:"age" zh:"时长"`
	OverdueNote     string `en:"The time of these is over, and their units are given back unless they stay charged. A settlement is still charged, for a day." zh:"这些预扣已过期：除标明不归还的以外，单位已经归还。一天之内仍可结算，按实际用量扣减。"`
	StaysCharged    string `en:"stays charged" zh:"过期后不归还"`
	MoreHolds       string `en:"And %s newer ones." zh:"另有较新的 %s 笔。"`
	MostHeld        string `en:"A hold gets at most %s of the smallest capacity: %s." zh:"一笔预扣最多为最小容量的 %s：%s。"`
	SpentByDay      string `en:"Spent by day" zh:"每日用量"`
	SpentText       string `en:"Today %s; in %d days %s" zh:"今天 %s；%d 天共 %s"`
	SpentNote       string `en:"Days of %s. A day has what was held on it and not returned, what was settled beyond that, and debits." zh:"按 %s 的日期。每天的用量为当天预扣而未归还的、结算时超出的，以及扣费。"`
	Spent           string `en:"spent" zh:"用量"`
	SpentToday      string `en:"spent today" zh:"今日用量"`
	LastDays        string `en:"%d days" zh:"%d 天"`
	Day             string `en:"day" zh:"日期"`
	Today           string `en:"today" zh:"今天"`
	LimitsSpentNote string `en:"Spent is what was held and not returned, what was settled beyond that, and debits. A day is one of the time zone of the limit's first quota, else of UTC." zh:"用量为预扣而未归还的、结算时超出的，以及扣费；日期按限额的第一个配额所在时区，否则按 UTC。"`
	SpentMost       string `en:"Who spent most" zh:"用量最多的 Key"`
	SettledSince    string `en:"Settled on this server since %s." zh:"自 %s 起在本服务器上结算的用量。"`
	NothingSettled  string `en:"This server has settled nothing under this limit since it was defined or the server started." zh:"自定义该限额或启动服务器以来，本服务器没有结算。"`
	AtMostLess      string `en:"%s, or up to %s less" zh:"%s，或最多少 %s"`

	// Actions:
	ActHeading    string `en:"Actions" zh:"操作"`
	ActReplica    string `en:"This server is a read-only replica: act on its leader's page." zh:"本服务器是只读副本：请在主节点的页面上操作。"`
	ActNoUser     string `en:"No user has a password, so nobody can sign in to act here. Add one to --aclfile and send ACL LOAD or SIGHUP, or set --requirepass-file." zh:"没有任何用户设有密码，因此无人能登录操作。请在 --aclfile 中添加带密码的用户并发送 ACL LOAD 或 SIGHUP，或设置 --requirepass-file。"`
	ActNotTrusted string `en:"Actions require HTTPS or localhost: set --metrics-tls-cert and --metrics-tls-key, or open the page through an SSH tunnel." zh:"操作需要 HTTPS 或 localhost：请设置 --metrics-tls-cert 和 --metrics-tls-key，或通过 SSH 隧道打开本页。"`
	ActNoReply    string `en:"The server does not answer. Nothing was done." zh:"服务器无响应。未执行任何操作。"`
	ActUnknown    string `en:"There was no answer, so the outcome is not known: look before you try again." zh:"没有收到响应，结果未知：请先查看，再决定是否重试。"`
	ActBusy       string `en:"Too many actions at once. Nothing was done; try again." zh:"同时进行的操作过多。未执行任何操作，请重试。"`
	ActNone       string `en:"There is no such action." zh:"没有这种操作。"`
	NotConfirmed  string `en:"Nothing was done: this confirmation is too old, was used already, or is not yours. Ask again." zh:"未执行任何操作：此确认已过期、已使用过，或不属于您。请重新操作。"`

	SignIn       string `en:"Sign in" zh:"登录"`
	SignInNote   string `en:"Sign in as a user of the server's access control list to act here." zh:"以服务器访问控制列表（ACL）中的用户登录后即可操作。"`
	SignOut      string `en:"Sign out" zh:"退出登录"`
	SignedInAs   string `en:"Signed in as %s" zh:"已登录：%s"`
	UserName     string `en:"User" zh:"用户名"`
	Password     string `en:"Password" zh:"密码"`
	SignInWrong  string `en:"Wrong name or password, or the user is disabled." zh:"用户名或密码错误，或该用户已停用。"`
	SignInOpen   string `en:"This user has no password, so anybody could act as it. Give it one in --aclfile, and send ACL LOAD or SIGHUP; the user default gets one by --requirepass." zh:"该用户没有密码，任何人都能以其身份操作。请在 --aclfile 中为其设置密码，然后发送 ACL LOAD 或 SIGHUP；default 用户请用 --requirepass。"`
	SignInBusy   string `en:"Too many sign-ins at once from your host. Try again in some seconds." zh:"来自您的主机的登录过多，请几秒后重试。"`
	SignInFailed string `en:"The server did not answer in time. Try again." zh:"服务器未及时响应，请重试。"`
	SignInEnded  string `en:"You are not signed in, or no longer: sign in again. Nothing was done." zh:"您尚未登录，或登录已失效：请重新登录。未执行任何操作。"`

	ActUser        string `en:"As user" zh:"用户"`
	ActReset       string `en:"Reset" zh:"重置"`
	ActRefund      string `en:"Refund" zh:"退还"`
	ActOverride    string `en:"Set override" zh:"设置覆盖规则"`
	ActEndOverride string `en:"End override" zh:"结束覆盖规则"`
	ActCancel      string `en:"Cancel" zh:"取消"`
	ActShadow      string `en:"Make it a shadow" zh:"设为影子限额"`
	ActEndShadow   string `en:"Enforce it" zh:"恢复限流"`
	ActByFile      string `en:"This limit is defined in --limits-file: change it there, and send CL.LIMIT RELOAD or SIGHUP." zh:"该限额在 --limits-file 中定义：请在文件中修改，然后发送 CL.LIMIT RELOAD 或 SIGHUP。"`
	ActOverRemote  string `en:"Over a store on other machines, overrides are in --limits-file only." zh:"使用其他机器上的存储时，覆盖规则只在 --limits-file 中定义。"`
	ActUnits       string `en:"Units" zh:"数量"`
	ActMicros      string `en:"Millionths of a dollar" zh:"数量（百万分之一美元）"`
	ActPolicy      string `en:"DENY, UNLIMITED, PLAN name, or rules" zh:"DENY、UNLIMITED、PLAN 名称，或规则"`
	ActSeconds     string `en:"Seconds (empty for no end)" zh:"秒数（留空则不结束）"`
	UnitsWrong     string `en:"Units must be a whole number, at least 1." zh:"数量须为不小于 1 的整数。"`
	SecondsWrong   string `en:"Seconds must be a whole number, at least 1, or empty." zh:"秒数须为不小于 1 的整数，或留空。"`
	PolicyRest     string `en:"Not understood: %s" zh:"无法识别：%s"`

	AskReset           string `en:"Reset %s? Its state is deleted: a limiter begins anew, a bucket is empty, a value is gone." zh:"重置 %s？其状态将被删除：限流器重新开始，桶变空，值消失。"`
	AskRefund          string `en:"Refund %s units to %s?" zh:"退还 %s 个给 %s？"`
	AskRefundMoney     string `en:"Refund %s to %s?" zh:"退还 %s 给 %s？"`
	AskOverride        string `en:"Set an override for %s? It decides in place of the limit's rules." zh:"为 %s 设置覆盖规则？它将取代该限额的规则。"`
	AskEndOverride     string `en:"End the override of %s that was set by command?" zh:"结束 %s 由命令设置的覆盖规则？"`
	AskShadow          string `en:"Turn the limit %s into a shadow? It no longer limits, and only counts what it would." zh:"将限额 %s 设为影子？它不再限流，只统计本应限流的请求。"`
	AskEndShadow       string `en:"Enforce the limit %s? It limits requests from then on." zh:"让限额 %s 生效？此后它将限流。"`
	ResetDone          string `en:"%s is reset." zh:"%s 已重置。"`
	ResetNothing       string `en:"There was nothing to reset: %s has no state." zh:"无需重置：%s 没有状态。"`
	RefundDone         string `en:"Refunded to %s: %s of %s units are available." zh:"已退还给 %s：可用 %s / %s。"`
	RefundedMoney      string `en:"Refunded to %s: %s of %s are available." zh:"已退还给 %s：可用 %s / %s。"`
	RefundNothing      string `en:"Nothing was refunded to %s: an override decides, and counts nothing." zh:"未退还给 %s：由覆盖规则判定，不计数。"`
	OverrideDone       string `en:"The override of %s holds." zh:"%s 的覆盖规则已生效。"`
	EndOverrideDone    string `en:"The override of %s has ended." zh:"%s 的覆盖规则已结束。"`
	EndOverrideNothing string `en:"%s had no override that was set by command." zh:"%s 没有由命令设置的覆盖规则。"`
	ShadowDone         string `en:"%s is a shadow: it only counts." zh:"%s 现为影子限额：只统计。"`
	EndShadowDone      string `en:"%s is enforced." zh:"%s 已生效。"`
}

// English returns the texts in English, read from the tags.
func English() *Texts { return textsOf("en") }

// Chinese returns the texts in Chinese, read from the tags.
func Chinese() *Texts { return textsOf("zh") }

// textsOf returns the texts of a language, by its name in the tags.
func textsOf(language string) *Texts {
	var t Texts
	texts := reflect.ValueOf(&t).Elem()
	for i := range texts.NumField() {
		texts.Field(i).SetString(texts.Type().Field(i).Tag.Get(language))
	}
	return &t
}

// ForScript returns the texts of the page's script.
func (t *Texts) ForScript() map[string]string {
	return map[string]string{"pause": t.Pause, "resume": t.Resume, "copy": t.Copy, "copied": t.Copied, "paused": t.PausedTitle, "started": t.Started, "restarted": t.Restarted}
}

// Span formats a duration with at most two units.
func (t *Texts) Span(d time.Duration) string {
	days, hours, minutes := int(d/(24*time.Hour)), int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf(t.DaysHours, days, hours)
	case hours > 0:
		return fmt.Sprintf(t.HoursMinutes, hours, minutes)
	case minutes > 0:
		return fmt.Sprintf(t.Minutes, minutes)
	default:
		return t.UnderAMinute
	}
}

// Period formats a rule's period in whole days, hours or minutes, from two days, an hour or two minutes on.
func (t *Texts) Period(seconds int64) string {
	for _, unit := range []struct {
		seconds, from int64
		text          string
	}{{24 * 60 * 60, 2, t.Days}, {60 * 60, 1, t.Hours}, {60, 2, t.Minutes}} {
		if n := seconds / unit.seconds; n >= unit.from && seconds%unit.seconds == 0 {
			return fmt.Sprintf(unit.text, n)
		}
	}
	return fmt.Sprintf(t.Seconds, seconds)
}

// Sentences joins sentences, between which Chinese has no space.
func (t *Texts) Sentences(all ...string) string {
	gap := " "
	if t.Lang != "en" {
		gap = ""
	}
	return strings.TrimSpace(strings.Join(all, gap))
}
