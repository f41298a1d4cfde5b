package words

import "strings"

// Severity holds the text of faults and of their signs.
type Severity struct {
	Warning, Critical, MoreFaults, Runbook, BackToPage, Counted, Started, Restarted, Paused, PausedTitle string

	DiskDo, DiskSlow, DiskSlowDo, SnapshotFails, SnapshotGrows, SnapshotDo                 string
	StoreDo, StoreServerDo, StoreFails, StoreFailsDo                                       string
	TooFewDo, LinkDownDo, Lags, LagForgets, LagDo, LagNow                                  string
	HandoverLate, HandoverForgets, HandoverDo, PeerLeads, PeerLeadsMeans, PeerLeadsDo      string
	CannotConnect, CannotConnectMeans, CannotConnectDo                                     string
	ConnectionsShort, ConnectionsShortMeans, ConnectionsShortDo                            string
	LimitersShort, LimitersShortMeans, LimitersShortDo                                     string
	ValuesShort, ValuesShortMeans, ValuesShortDo, ValuesRefusedDo, ProcessLarge, ProcessDo string
	ErrorsMany, ErrorsMeans, ErrorsDo, LatencyMeans, LatencyLong, LatencyDo                string
	FileRefused, FileRefusedMeans, FileRefusedDo, Panics, PanicsMeans, PanicsDo            string
	Passwords, PasswordsMeans, PasswordsDo, ScriptsEnd, ScriptsEndMeans, ScriptsEndDo      string
	NewKeys, NewKeysMeans, NewKeysDo, LogLost, LogLostMeans, LogLostDo                     string
}

func severity(in func(en, zh string) string) Severity {
	s := Severity{
		Warning:     in("Warning", "警告"),
		Critical:    in("Critical", "严重"),
		MoreFaults:  in("and %d more", "另有 %d 项"),
		Runbook:     in("Runbook: %s", "处理手册（英文）：%s"),
		BackToPage:  in("Back to the live page", "返回实时状态"),
		Counted:     in("%s within the last %d minutes.", "共 %s 次（最近 %d 分钟）。"),
		Started:     in("started", "启动"),
		Restarted:   in("restarted", "重启"),
		Paused:      in("Paused: figures as of", "已暂停，数据截至"),
		PausedTitle: in("Paused", "已暂停"),

		DiskDo: in("Free space on the disk, or repair it. The server tries again every few seconds: do not restart it.",
			"请释放磁盘空间或修复磁盘。服务器每隔几秒重试，请勿重启。"),
		DiskSlow:      in("The disk does not keep up with the changes.", "磁盘写入跟不上变更。"),
		DiskSlowDo:    in("Find what else writes to this disk.", "请查明还有什么程序在写该磁盘。"),
		SnapshotFails: in("The last snapshot failed.", "最近一次快照失败。"),
		SnapshotGrows: in("Nothing is lost, but the log grows until one succeeds.", "没有丢失数据，但日志会不断增长，直到快照成功。"),
		SnapshotDo: in("Make room for a second snapshot. The server tries again every minute.",
			"请为第二份快照腾出空间。服务器每分钟重试。"),

		StoreDo: in("Check that the store is up and reachable from here. A restart of this server does not help.",
			"请检查存储是否运行、能否从本机访问。重启本服务器没有帮助。"),
		StoreServerDo: in("Check the server that is away, and the way to it: the table below names it.",
			"请检查无响应的服务器及网络，见下方列表。"),
		StoreFails:   in("More than %s of the calls were not decided by the store.", "超过 %s 的请求未由存储判定。"),
		StoreFailsDo: in("Compare its round trip with --store-timeout; the log has the reasons.", "请比较往返时间与 --store-timeout；原因见日志。"),

		TooFewDo: in("Repair or add replicas. If another server leads, send the clients there.",
			"请修复或增加副本；如果另一台服务器已成为主节点，请让客户端连接那一台。"),
		LinkDownDo: in("Check that the leader is up and reachable from here.", "请检查主节点是否运行、能否从本机访问。"),
		Lags:       in("A replica is more than %s behind.", "副本落后超过 %s。"),
		LagForgets: in("If the leader crashed now, what was charged in that time would be forgiven.",
			"如果主节点此时崩溃，这段时间的扣减会丢失。"),
		LagDo:  in("Check the replica's machine, network and disk.", "请检查副本的机器、网络和磁盘。"),
		LagNow: in("It is %s behind.", "目前落后 %s。"),
	}
	s.ofLeaders(in)
	s.ofClients(in)
	s.ofMemory(in)
	return s
}

func (s *Severity) ofLeaders(in func(en, zh string) string) {
	s.HandoverLate = in("A planned change of leader failed.", "计划内的主节点切换失败。")
	s.HandoverForgets = in("The leader leads on, or it was silent, and what the new one had not received is forgiven.",
		"原主节点继续工作；如果它没有响应，新主节点尚未收到的扣减会丢失。")
	s.HandoverDo = in("Nothing has to be repaired; the log says why.", "无需修复，原因见日志。")
	s.PeerLeads = in("The other server of the pair leads, too.", "另一台服务器也是主节点。")
	s.PeerLeadsMeans = in("Clients of each are charged apart, and have up to twice their limits.", "两台各自扣减，客户端最多可用两倍限额。")
	s.PeerLeadsDo = in("Decide which one's states to keep, and send REPLICAOF to the other one, whose own are replaced.",
		"请决定保留哪一台的状态，并对另一台执行 REPLICAOF，其状态将被替换。")
}

func (s *Severity) ofClients(in func(en, zh string) string) {
	s.CannotConnect = in("Clients cannot connect.", "客户端无法连接。")
	s.CannotConnectMeans = in("Connections are refused at --maxclients or --maxclients-per-address, or by protected mode.",
		"连接因 --maxclients、--maxclients-per-address 或保护模式被拒绝。")
	s.CannotConnectDo = in("Find the client that opens so many, or raise the limit; against protected mode, set a password.",
		"请查明哪个客户端打开了大量连接，或提高上限；如因保护模式，请设置密码。")
	s.ConnectionsShort = in("More than %s of --maxclients are connected.", "连接数超过 --maxclients 的 %s。")
	s.ConnectionsShortMeans = in("At 100 % new clients are refused.", "达到 100 % 时拒绝新客户端。")
	s.ConnectionsShortDo = in("Find the client that leaks connections (CLIENT LIST), or raise maxclients.",
		"请用 CLIENT LIST 查明哪个客户端泄漏连接，或提高 maxclients。")
	s.ErrorsMany = in("Calls get error replies, more than %s a second.", "请求收到错误返回，每秒超过 %s 次。")
	s.ErrorsMeans = in(`Some libraries take an error for "allowed", and then limit nobody.`, "有些库会把错误当作放行，因而不再限流。")
	s.ErrorsDo = in("The last error below has the call and its client.", "下方的最近一次错误含有请求及其客户端。")
	s.LatencyLong = in("Calls are slow.", "请求变慢。")
	s.LatencyMeans = in("The slowest 1 % take more than %s within the server.", "最慢的 1 % 在服务器内耗时超过 %s。")
	s.LatencyDo = in("SLOWLOG GET 10 shows slow calls and their clients. Check the processors and scripts, too.",
		"SLOWLOG GET 10 列出慢请求及其客户端；请同时检查处理器和脚本。")
	s.Passwords = in("Wrong passwords arrive.", "收到错误的密码。")
	s.PasswordsMeans = in("A client has an old password, or somebody guesses.", "某个客户端使用旧密码，或有人在猜测密码。")
	s.PasswordsDo = in("ACL LOG shows addresses and users.", "ACL LOG 列出地址和用户。")
	s.ScriptsEnd = in("Scripts are ended at a limit.", "脚本因达到上限被终止。")
	s.ScriptsEndMeans = in("Their callers get an error.", "调用者收到错误。")
	s.ScriptsEndDo = in("Shorten the script, or raise --lua-time-limit.", "请缩短脚本，或提高 --lua-time-limit。")
	s.NewKeys = in("Calls with new keys are refused by --max-new-keys-per-second.", "新 Key 的请求因 --max-new-keys-per-second 被拒绝。")
	s.NewKeysMeans = in("Their callers get an error; existing keys are not affected.", "调用者收到错误；已有的 Key 不受影响。")
	s.NewKeysDo = in("Find the client that creates so many keys.", "请查明哪个客户端创建了大量 Key。")
	s.FileRefused = in("The changed file of limits was refused.", "修改后的限额文件被拒绝。")
	s.FileRefusedMeans = in("The previous limits stay in use, but the server would not start with the file.",
		"原有限额继续生效，但服务器无法用该文件启动。")
	s.FileRefusedDo = in("The log names each wrong line. Correct them and reload.", "日志列出每处错误，请更正后重新加载。")
	s.Panics = in("A bug of the server closed a connection.", "服务器的缺陷导致连接关闭。")
	s.PanicsMeans = in("Other clients were not affected.", "其他客户端不受影响。")
	s.PanicsDo = in("The log has the stack: please report it.", "堆栈见日志，请报告。")
	s.LogLost = in("Lines of the log are lost.", "日志行丢失。")
	s.LogLostMeans = in("Clients are not affected.", "客户端不受影响。")
	s.LogLostDo = in("Check what reads the log, and scripts that write to it.", "请检查读取日志的程序，以及写日志的脚本。")
}

func (s *Severity) ofMemory(in func(en, zh string) string) {
	const full, fullZh = "At 100 % new ones evict others, or are refused.", "达到 100 % 时，新的会淘汰其他的，或被拒绝。"
	s.LimitersShort = in("More than %s of the memory for limiters is in use.", "限流 Key 的内存已用超过 %s。")
	s.LimitersShortMeans = in(full, fullZh)
	s.LimitersShortDo = in("Raise --maxmemory, or find the client that creates the keys.", "请增大 --maxmemory，或查明哪个客户端创建了这些 Key。")
	s.ValuesShort = in("More than %s of the memory for values is in use.", "值的内存已用超过 %s。")
	s.ValuesShortMeans = in(full, fullZh)
	s.ValuesShortDo = in("Raise --maxmemory-values, or shorten times to live.", "请增大 --maxmemory-values，或缩短过期时间。")
	s.ValuesRefusedDo = in("Raise --maxmemory-values, or set --require-ttl: values that never expire are not evicted.",
		"请增大 --maxmemory-values，或设置 --require-ttl：永不过期的值不会被淘汰。")
	s.ProcessLarge = in("The process uses more memory than --maxmemory.", "进程占用的内存超过 --maxmemory。")
	s.ProcessDo = in("Check the memory of clients below (CLIENT LIST has each), or raise --maxmemory.",
		"请检查下方客户端占用的内存（CLIENT LIST 列出每个客户端），或增大 --maxmemory。")
}

// Sentences joins sentences, between which Chinese has no space.
func (t *Texts) Sentences(all ...string) string {
	gap := " "
	if t.Lang != "en" {
		gap = ""
	}
	return strings.TrimSpace(strings.Join(all, gap))
}
