package words

// Severity holds the text of faults and of their signs.
type Severity struct {
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
}
