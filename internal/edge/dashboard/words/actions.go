package words

// Actions holds the texts of the actions on the page.
type Actions struct {
	ActHeading    string `en:"Actions" zh:"操作"`
	ActReplica    string `en:"This server is a read-only replica: act on its leader's page." zh:"本服务器是只读副本：请在主节点的页面上操作。"`
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
	ActPolicy      string `en:"DENY, UNLIMITED, PLAN name, or rules" zh:"DENY、UNLIMITED、PLAN 名称，或规则"`
	ActSeconds     string `en:"Seconds (empty for no end)" zh:"秒数（留空则不结束）"`
	UnitsWrong     string `en:"Units must be a whole number, at least 1." zh:"数量须为不小于 1 的整数。"`
	SecondsWrong   string `en:"Seconds must be a whole number, at least 1, or empty." zh:"秒数须为不小于 1 的整数，或留空。"`
	PolicyRest     string `en:"Not understood: %s" zh:"无法识别：%s"`

	AskReset           string `en:"Reset %s? Its state is deleted: a limiter begins anew, a bucket is empty, a value is gone." zh:"重置 %s？其状态将被删除：限流器重新开始，桶变空，值消失。"`
	AskRefund          string `en:"Refund %s units to %s?" zh:"退还 %s 个给 %s？"`
	AskOverride        string `en:"Set an override for %s? It decides in place of the limit's rules." zh:"为 %s 设置覆盖规则？它将取代该限额的规则。"`
	AskEndOverride     string `en:"End the override of %s that was set by command?" zh:"结束 %s 由命令设置的覆盖规则？"`
	AskShadow          string `en:"Turn the limit %s into a shadow? It no longer limits, and only counts what it would." zh:"将限额 %s 设为影子？它不再限流，只统计本应限流的请求。"`
	AskEndShadow       string `en:"Enforce the limit %s? It limits requests from then on." zh:"让限额 %s 生效？此后它将限流。"`
	ResetDone          string `en:"%s is reset." zh:"%s 已重置。"`
	ResetNothing       string `en:"There was nothing to reset: %s has no state." zh:"无需重置：%s 没有状态。"`
	RefundDone         string `en:"Refunded to %s: %s of %s units are available." zh:"已退还给 %s：可用 %s / %s。"`
	RefundNothing      string `en:"Nothing was refunded to %s: an override decides, and counts nothing." zh:"未退还给 %s：由覆盖规则判定，不计数。"`
	OverrideDone       string `en:"The override of %s holds." zh:"%s 的覆盖规则已生效。"`
	EndOverrideDone    string `en:"The override of %s has ended." zh:"%s 的覆盖规则已结束。"`
	EndOverrideNothing string `en:"%s had no override that was set by command." zh:"%s 没有由命令设置的覆盖规则。"`
	ShadowDone         string `en:"%s is a shadow: it only counts." zh:"%s 现为影子限额：只统计。"`
	EndShadowDone      string `en:"%s is enforced." zh:"%s 已生效。"`
}
