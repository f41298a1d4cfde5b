package words

// Actions holds the texts of the actions on the page.
type Actions struct {
	ActHeading, ActReplica, ActNotTrusted, ActNoReply, ActUnknown, ActBusy, ActNone, NotConfirmed string

	SignIn, SignInNote, SignOut, SignedInAs, UserName, Password                        string
	SignInWrong, SignInOpen, SignInBusy, SignInFailed, SignInEnded                     string
	ActUser, ActReset, ActRefund, ActOverride, ActEndOverride, ActCancel               string
	ActShadow, ActEndShadow, ActByFile, ActOverRemote, ActUnits, ActPolicy, ActSeconds string
	UnitsWrong, SecondsWrong, PolicyRest                                               string
	AskReset, AskRefund, AskOverride, AskEndOverride, AskShadow, AskEndShadow          string
	ResetDone, ResetNothing, RefundDone, RefundNothing, OverrideDone, EndOverrideDone  string
	EndOverrideNothing, ShadowDone, EndShadowDone                                      string
}

func actions(in func(en, zh string) string) Actions {
	a := Actions{
		ActHeading: in("Actions", "操作"),
		ActReplica: in("This server is a read-only replica: act on its leader's page.", "本服务器是只读副本：请在主节点的页面上操作。"),
		ActNotTrusted: in("Actions require HTTPS or localhost: set --metrics-tls-cert and --metrics-tls-key, or open the page through an SSH tunnel.",
			"操作需要 HTTPS 或 localhost：请设置 --metrics-tls-cert 和 --metrics-tls-key，或通过 SSH 隧道打开本页。"),
		ActNoReply: in("The server does not answer. Nothing was done.", "服务器无响应。未执行任何操作。"),
		ActUnknown: in("There was no answer, so the outcome is not known: look before you try again.", "没有收到响应，结果未知：请先查看，再决定是否重试。"),
		ActBusy:    in("Too many actions at once. Nothing was done; try again.", "同时进行的操作过多。未执行任何操作，请重试。"),
		ActNone:    in("There is no such action.", "没有这种操作。"),
		NotConfirmed: in("Nothing was done: this confirmation is too old, was used already, or is not yours. Ask again.",
			"未执行任何操作：此确认已过期、已使用过，或不属于您。请重新操作。"),

		SignIn:     in("Sign in", "登录"),
		SignInNote: in("Sign in as a user of the server's access control list to act here.", "以服务器访问控制列表（ACL）中的用户登录后即可操作。"),
		SignOut:    in("Sign out", "退出登录"),
		SignedInAs: in("Signed in as %s", "已登录：%s"),
		UserName:   in("User", "用户名"),
		Password:   in("Password", "密码"),
		SignInWrong: in("Wrong name or password, or the user is disabled.",
			"用户名或密码错误，或该用户已停用。"),
		SignInOpen: in("This user has no password, so anybody could act as it. Give it one in --aclfile, and send ACL LOAD or SIGHUP; the user default gets one by --requirepass.",
			"该用户没有密码，任何人都能以其身份操作。请在 --aclfile 中为其设置密码，然后发送 ACL LOAD 或 SIGHUP；default 用户请用 --requirepass。"),
		SignInBusy:   in("Too many sign-ins at once from your host. Try again in some seconds.", "来自您的主机的登录过多，请几秒后重试。"),
		SignInFailed: in("The server did not answer in time. Try again.", "服务器未及时响应，请重试。"),
		SignInEnded: in("You are not signed in, or no longer: sign in again. Nothing was done.",
			"您尚未登录，或登录已失效：请重新登录。未执行任何操作。"),
	}
	a.ofForms(in)
	a.ofOutcomes(in)
	return a
}

func (a *Actions) ofForms(in func(en, zh string) string) {
	a.ActUser = in("As user", "用户")
	a.ActReset = in("Reset", "重置")
	a.ActRefund = in("Refund", "退还")
	a.ActOverride = in("Set override", "设置覆盖规则")
	a.ActEndOverride = in("End override", "结束覆盖规则")
	a.ActCancel = in("Cancel", "取消")
	a.ActShadow = in("Make it a shadow", "设为影子限额")
	a.ActEndShadow = in("Enforce it", "恢复限流")
	a.ActByFile = in("This limit is defined in --limits-file: change it there, and send CL.LIMIT RELOAD or SIGHUP.",
		"该限额在 --limits-file 中定义：请在文件中修改，然后发送 CL.LIMIT RELOAD 或 SIGHUP。")
	a.ActOverRemote = in("Over a store on other machines, overrides are in --limits-file only.", "使用其他机器上的存储时，覆盖规则只在 --limits-file 中定义。")
	a.ActUnits = in("Units", "数量")
	a.ActPolicy = in("DENY, UNLIMITED, PLAN name, or rules", "DENY、UNLIMITED、PLAN 名称，或规则")
	a.ActSeconds = in("Seconds (empty for no end)", "秒数（留空则不结束）")
	a.UnitsWrong = in("Units must be a whole number, at least 1.", "数量须为不小于 1 的整数。")
	a.SecondsWrong = in("Seconds must be a whole number, at least 1, or empty.", "秒数须为不小于 1 的整数，或留空。")
	a.PolicyRest = in("Not understood: %s", "无法识别：%s")
}

func (a *Actions) ofOutcomes(in func(en, zh string) string) {
	a.AskReset = in("Reset %s? Its state is deleted: a limiter begins anew, a bucket is empty, a value is gone.", "重置 %s？其状态将被删除：限流器重新开始，桶变空，值消失。")
	a.AskRefund = in("Refund %s units to %s?", "退还 %s 个给 %s？")
	a.AskOverride = in("Set an override for %s? It decides in place of the limit's rules.", "为 %s 设置覆盖规则？它将取代该限额的规则。")
	a.AskEndOverride = in("End the override of %s that was set by command?", "结束 %s 由命令设置的覆盖规则？")
	a.AskShadow = in("Turn the limit %s into a shadow? It no longer limits, and only counts what it would.",
		"将限额 %s 设为影子？它不再限流，只统计本应限流的请求。")
	a.AskEndShadow = in("Enforce the limit %s? It limits requests from then on.", "让限额 %s 生效？此后它将限流。")
	a.ResetDone = in("%s is reset.", "%s 已重置。")
	a.ResetNothing = in("There was nothing to reset: %s has no state.", "无需重置：%s 没有状态。")
	a.RefundDone = in("Refunded to %s: %s of %s units are available.", "已退还给 %s：可用 %s / %s。")
	a.RefundNothing = in("Nothing was refunded to %s: an override decides, and counts nothing.", "未退还给 %s：由覆盖规则判定，不计数。")
	a.OverrideDone = in("The override of %s holds.", "%s 的覆盖规则已生效。")
	a.EndOverrideDone = in("The override of %s has ended.", "%s 的覆盖规则已结束。")
	a.EndOverrideNothing = in("%s had no override that was set by command.", "%s 没有由命令设置的覆盖规则。")
	a.ShadowDone = in("%s is a shadow: it only counts.", "%s 现为影子限额：只统计。")
	a.EndShadowDone = in("%s is enforced.", "%s 已生效。")
}
