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
	NoPassword      string `en:"Other hosts can use this server without a password: set --requirepass." zh:"其他主机无需密码即可使用本服务器：请设置 --requirepass。"`
	RefusesHosts    string `en:"Clients on other hosts are refused because no password is set (protected mode): set --requirepass." zh:"未设置密码，其他主机的客户端会被拒绝（保护模式）：请设置 --requirepass。"`
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
	CircuitClosed   string `en:"answers" zh:"正常"`
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

	LimitsHeading string `en:"Named limits" zh:"命名限额"`
	LimitsScroll  string `en:"Table of the named limits" zh:"命名限额的表格"`
	Limit         string `en:"limit" zh:"限额"`
	Rules         string `en:"rules" zh:"规则"`
	Shadow        string `en:"shadow" zh:"影子"`

	AtOnce      string `en:"%s at once" zh:"一次最多 %s 个"`
	PerSecond   string `en:"%s per second" zh:"每秒 %s 个"`
	PerMinute   string `en:"%s per minute" zh:"每分钟 %s 个"`
	PerHour     string `en:"%s per hour" zh:"每小时 %s 个"`
	PerDay      string `en:"%s per day" zh:"每天 %s 个"`
	PerPeriod   string `en:"%s per %s" zh:"%s 个 / %s"`
	Fixed       string `en:"fixed" zh:"固定窗口"`
	Sliding     string `en:"sliding" zh:"滑动窗口"`
	Approximate string `en:"approximate" zh:"近似滑动窗口"`
	ASecond     string `en:"%s a second" zh:"每个自然秒 %s 个"`
	AMinute     string `en:"%s a minute" zh:"每个自然分钟 %s 个"`
	AnHour      string `en:"%s an hour" zh:"每个自然小时 %s 个"`
	ADay        string `en:"%s a day" zh:"每个自然日 %s 个"`
	AWeek       string `en:"%s a week" zh:"每个自然周 %s 个"`
	AMonth      string `en:"%s a month" zh:"每个自然月 %s 个"`
	AYear       string `en:"%s a year" zh:"每个自然年 %s 个"`
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
	NeverExpires  string `en:"never" zh:"永不"`

	RefusedHeading  string `en:"Commands refused" zh:"拒绝的命令"`
	RefusedNote     string `en:"Clients send commands that this server does not have. Some libraries take the error for \"allowed\" and limit nobody." zh:"客户端发送了本服务器没有的命令。有些库会把错误当作放行，因而不再限流。"`
	RefusedScroll   string `en:"Table of refused commands" zh:"拒绝的命令的表格"`
	RefusedCalls    string `en:"calls" zh:"次数"`
	UnknownCommands string `en:"unknown commands" zh:"未知的命令"`

	Actions
	Drawer
	Severity
}

// English returns the texts in English, read from the tags.
func English() *Texts { return textsOf("en") }

// Chinese returns the texts in Chinese, read from the tags.
func Chinese() *Texts { return textsOf("zh") }

func textsOf(language string) *Texts {
	var t Texts
	read(reflect.ValueOf(&t).Elem(), language)
	return &t
}

// read sets texts to those of a language, by its name in their tags.
func read(texts reflect.Value, language string) {
	for i := range texts.NumField() {
		if field := texts.Type().Field(i); field.Anonymous {
			read(texts.Field(i), language)
		} else {
			texts.Field(i).SetString(field.Tag.Get(language))
		}
	}
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
