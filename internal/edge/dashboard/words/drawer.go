package words

// Drawer holds the texts of the search, the drawer, and the tables that lead to it.
type Drawer struct {
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

	AllowedNow           string `en:"Allowed: %s at once" zh:"放行：一次最多 %s 个"`
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
	LeakRate       string `en:"%s every %s" zh:"%s 单位 / %s"`
	In             string `en:"in %s" zh:"%s 后"`
	Now            string `en:"now" zh:"现在"`
	Level          string `en:"Level" zh:"水位"`
	Used           string `en:"Used" zh:"已用"`
	Leak           string `en:"Leak rate" zh:"漏出速率"`
	UntilFree      string `en:"One unit available" zh:"可用一个单位"`
	UntilEmpty     string `en:"Empty" zh:"漏空"`
	Available      string `en:"Available" zh:"可用"`
	ResetAfter     string `en:"Nothing used" zh:"全部恢复"`
	NoRetry        string `en:"never" zh:"永不"`
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
	ByCommand      string `en:"command" zh:"命令"`
	ByFile         string `en:"file" zh:"文件"`
	SetBy          string `en:"set by" zh:"来源"`
	Ends           string `en:"ends" zh:"结束"`
	NoEnd          string `en:"never" zh:"永不"`

	TopNone     string `en:"No key stands out." zh:"没有突出的 Key。"`
	TopNote     string `en:"Rates cover the last 10 seconds, with the error of an estimate, and shares all calls of the last minutes; – means not known yet. Select a key to see its limiter." zh:"速率按最近 10 秒计算，估计值附带误差；占比为最近几分钟全部请求中的占比；– 表示暂无数据。点击 Key 可查看其限流器。"`
	PerSec      string `en:"calls per second" zh:"请求/秒"`
	LimitedRate string `en:"limited per second" zh:"限流/秒"`
	LimitHit    string `en:"limit" zh:"限额"`
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
	APeriod     string `en:"%s a window of the calendar" zh:"每个自然窗口 %s 个"`
}
