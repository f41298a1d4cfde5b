package words

// Drawer holds the texts of the search, the drawer, and the tables that lead to it.
type Drawer struct {
	Find, FindHint, FindButton, KeyHint, Close, LimitTitle, NoAnswer                              string
	Key, KeyMissing, KeyQuotes, KeyTooLong, Database, DatabaseTooLarge, AlsoIn                    string
	NumberTooSmall, ZeroRate, TooSlow, TooLong, LimitUnknown, WrongKind, StoreDown                string
	NoSuchKey, NoSuchKeyHint, Alike, LimitNotKnown, LimitNotKnownHint, LimitGoneHint, NoState     string
	AllowedNow, LimitedFor, LimitedAlways, LimitedUntilFilled, LimitedUntilReleased, ShadowedNext string
	ByLimit, ByOverride, LimitOfLink, LimitOfLastCall, LinkToKey, LinkToLimit                     string
	FunnelPicture, BucketPicture, WindowPicture, PlacesPicture, UnitsOf, LeakRate, In, Now        string
	Level, Used, Leak, UntilFree, UntilEmpty, Available, ResetAfter, NoRetry                      string
	Kind, UnitsStored, ReplyHeading                                                               string
	Course, CourseText, CourseUnknown, CourseSoon                                                 string
	Rule, Together, RulesSince, ShadowNote, OverNote, OverriddenNote                              string
	Busiest, NoOverrides, MoreOverrides, ByCommand, ByFile, SetBy, Ends, NoEnd                    string
	LimitedRate, LimitHit, ShareBar, KindsNote                                                    string
	FiveMinutes, Filter, NoneMatches, Fold, Unfold, APeriod                                       string
	TopNone, TopNote, PerSec, Share, LimitsNote, LimitsMore, RuleCount, Near, Overrides           string
}

func drawer(in func(en, zh string) string) Drawer {
	d := Drawer{
		Find:       in("Key or named limit", "Key 或命名限额"),
		FindHint:   in("Find a key or a limit", "查找 Key 或命名限额"),
		FindButton: in("Find", "查找"),
		KeyHint: in(`A key, a named limit, or a whole call such as cl.throttle user:1 15 30 60. A key in double quotes can contain escapes: "a\x00\xff".`,
			`Key、命名限额，或完整的命令，例如 cl.throttle user:1 15 30 60。双引号中的 Key 可以包含转义字符："a\x00\xff"。`),
		Close:      in("Close", "关闭"),
		LimitTitle: in("Limit %s", "命名限额 %s"),
		NoAnswer:   in("No answer", "无法查看"),

		Key:        "Key",
		KeyMissing: in(`Enter a key, or "" for the empty key.`, `请填写 Key；空 Key 写作 ""。`),
		KeyQuotes: in(`A key that begins with a double quote must end with one; write \" for quotes inside it.`,
			`以双引号开头的 Key 必须以双引号结尾，其中的双引号写作 \"。`),
		KeyTooLong: in("The key is longer than %d bytes, the maximum of this server.",
			"Key 超过 %d 字节，这是本服务器允许的最大长度。"),
		Database:         in("Database", "数据库"),
		DatabaseTooLarge: in("The database must be from 0 to %d.", "数据库编号须在 0 到 %d 之间。"),
		AlsoIn:           in("Also in database %d", "数据库 %d 中也有"),
	}
	d.ofAnswers(in)
	d.ofRules(in)
	d.ofTables(in)
	return d
}

func (d *Drawer) ofAnswers(in func(en, zh string) string) {
	d.NumberTooSmall = in("It must be at least %s.", "不能小于 %s。")
	d.ZeroRate = in("This would not limit anything: count and period must be at least 1, and count at most "+
		"one per nanosecond.",
		"这样不会有任何限制：count 和 period 至少为 1，且 count 不得超过每纳秒一个。")
	d.TooSlow = in("This funnel would take more than 146 years to drain: enter a smaller max_burst or "+
		"period, or a larger count.",
		"这个漏斗需要 146 年以上才能漏空：请减小 max_burst 或 period，或增大 count。")
	d.TooLong = in("This window would be longer than 146 years: enter a smaller period.",
		"这个窗口超过 146 年：请减小 period。")
	d.WrongKind = in("The key is of another kind than this limit: calls get WRONGTYPE.", "该 Key 的类型与此限额不符：请求会得到 WRONGTYPE。")
	d.StoreDown = in("The store did not answer in time. Looking changes nothing: try again.", "存储未及时响应。查看不会改变任何数据，请重试。")
	d.LimitUnknown = in("There is no limit of this name.", "没有此名称的命名限额。")

	d.NoSuchKey = in("No such key: nothing is charged to it", "没有这个 Key：没有任何扣减")
	d.NoSuchKeyHint = in("To see how its next call would be decided, enter the whole call, such as cl.throttle user:1 15 30 60.",
		"若要查看下一次请求的判定，请填写完整的命令，例如 cl.throttle user:1 15 30 60。")
	d.Alike = in("Keys with this in their name", "名称中含有它的 Key")
	d.LimitNotKnown = in("The limit is not known", "限额未知")
	d.LimitNotKnownHint = in("The server stores a key's state but not its limit, and the key is not among the most requested now. "+
		"Enter a whole call, such as cl.throttle user:1 15 30 60.",
		"服务器只保存 Key 的状态，不保存限额，而该 Key 目前不在请求最多的 Key 之中。请填写完整的命令，例如 cl.throttle user:1 15 30 60。")
	d.LimitGoneHint = in("The named limit that the key was charged under is not defined now.", "该 Key 所属的命名限额目前没有定义。")
	d.NoState = in("The server has no state for this key: nothing is charged to it.", "服务器没有该 Key 的状态：没有任何扣减。")

	d.AllowedNow = in("Allowed: %s at once", "放行：一次最多 %s 个")
	d.LimitedFor = in("Limited; allowed in %s", "限流；%s 后放行")
	d.LimitedAlways = in("Limited; waiting does not help", "限流；等待无效")
	d.LimitedUntilFilled = in("Limited until it is filled", "限流；补充后放行")
	d.LimitedUntilReleased = in("Limited until a place is released or its lease ends", "限流；释放名额或租约到期后放行")
	d.ShadowedNext = in("The limit is a shadow, else the next call would be limited.", "这是影子限额，否则下一次请求会被限流。")
	d.ByLimit = in("By the named limit", "命名限额")
	d.ByOverride = in("An override decides:", "由覆盖规则判定：")
	d.LimitOfLink = in("By the limit in the URL.", "按本页网址中的限额。")
	d.LimitOfLastCall = in("By the limit of its last call.", "按最近一次请求的限额。")
	d.LinkToKey = in("Link to this key", "此 Key 的链接")
	d.LinkToLimit = in("Link to this limit", "此命名限额的链接")
}

func (d *Drawer) ofRules(in func(en, zh string) string) {
	d.FunnelPicture = in("A funnel that is %s full: %s.", "漏斗已满 %s：%s。")
	d.BucketPicture = in("A bucket that is %s full: %s.", "桶中有 %s：%s。")
	d.WindowPicture = in("A window of which %s is used: %s.", "窗口已用 %s：%s。")
	d.PlacesPicture = in("Places of which %s are taken: %s.", "名额已占用 %s：%s。")
	d.UnitsOf = in("%s of %s units", "%s / %s 单位")
	d.LeakRate = in("%s every %s", "%s 单位 / %s")
	d.In = in("in %s", "%s 后")
	d.Now = in("now", "现在")
	d.Level = in("Level", "水位")
	d.Used = in("Used", "已用")
	d.Leak = in("Leak rate", "漏出速率")
	d.UntilFree = in("One unit available", "可用一个单位")
	d.UntilEmpty = in("Empty", "漏空")
	d.Available = in("Available", "可用")
	d.ResetAfter = in("Nothing used", "全部恢复")
	d.NoRetry = in("never", "永不")
	d.Kind = in("Kind", "类型")
	d.UnitsStored = in("Units", "单位")
	d.ReplyHeading = in("%s with quantity 1 would reply", "%s 在 quantity 为 1 时将返回")
	d.Course = in("Last minutes", "最近几分钟")
	d.CourseText = in("In %s about %s calls, of which %s limited", "%s内约 %s 次请求，其中限流 %s 次")
	d.CourseUnknown = in("Not known: only the most requested keys are followed.", "未知：只跟踪请求最多的 Key。")
	d.CourseSoon = in("Not known yet: calls are counted every ten seconds.", "暂无数据：每 10 秒统计一次。")
	d.Rule = in("rule", "规则")
	d.Together = in("together", "合计")
	d.RulesSince = in("Rules, with their counts since the limit was defined", "规则，及自定义以来的次数")
	d.ShadowNote = in("This limit is a shadow: it denies nothing, and counts what it would have limited.",
		"这是影子限额：并不限流，只统计本应限流的次数。")
	d.OverNote = in("%s of the limited calls were debits, charged beyond the limit.", "限流的次数中，%s 次为超额扣减。")
	d.OverriddenNote = in("%s of all calls were decided by an override.", "全部次数中，%s 次由覆盖规则判定。")
	d.Busiest = in("Busiest keys", "请求最多的 Key")
	d.Overrides = in("overrides", "覆盖规则")
	d.NoOverrides = in("None.", "没有。")
	d.MoreOverrides = in("%s more: CL.LIMIT OVERRIDES %s", "另有 %s 个：CL.LIMIT OVERRIDES %s")
	d.ByCommand = in("command", "命令")
	d.ByFile = in("file", "文件")
	d.SetBy = in("set by", "来源")
	d.Ends = in("ends", "结束")
	d.NoEnd = in("never", "永不")
}

func (d *Drawer) ofTables(in func(en, zh string) string) {
	d.TopNone = in("No key stands out.", "没有突出的 Key。")
	d.TopNote = in("Rates cover the last 10 seconds, with the error of an estimate, and shares all calls of the last minutes; – means not "+
		"known yet. Select a key to see its limiter.",
		"速率按最近 10 秒计算，估计值附带误差；占比为最近几分钟全部请求中的占比；– 表示暂无数据。点击 Key 可查看其限流器。")
	d.PerSec = in("calls per second", "请求/秒")
	d.LimitedRate = in("limited per second", "限流/秒")
	d.LimitHit = in("limit", "限额")
	d.Share = in("share of all calls", "占全部请求")
	d.ShareBar = in("share, with the limited part", "占比及限流部分")
	d.KindsNote = in("Counts since the start. CL.THROTTLE includes CL.TOKENBUCKET, CL.DEBIT, CL.RESERVE and CL.BTHROTTLE, whose keys are funnels, too.",
		"启动以来的次数。CL.THROTTLE 包括 CL.TOKENBUCKET、CL.DEBIT、CL.RESERVE 和 CL.BTHROTTLE：它们的 Key 也是漏斗。")
	d.LimitsNote = in("The share of the last five minutes that was limited, and that was allowed near the limit (by default from 80 % on). "+
		"A shadow limits nothing: its share is what it would have limited.",
		"最近五分钟的限流比例，以及接近限额（默认 80 %）而放行的比例。影子限额并不限流，其比例为本应限流的部分。")
	d.LimitsMore = in("And %d more; CL.LIMIT LIST has all.", "另有 %d 个命名限额；完整列表见 CL.LIMIT LIST。")
	d.RuleCount = in("all of %s rules", "同时满足 %s 条规则")
	d.Near = in("near", "接近")
	d.FiveMinutes = in("5 minutes", "5 分钟")
	d.Filter = in("Filter by name", "按名称筛选")
	d.NoneMatches = in("No limit has this in its name.", "没有名称匹配的命名限额。")
	d.Fold = in("Show only ten", "只显示 10 个")
	d.Unfold = in("Show %d more", "再显示 %d 个")
	d.APeriod = in("%s a window of the calendar", "每个自然窗口 %s 个")
}
