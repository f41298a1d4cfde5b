package connection_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestChannelRights: one selector has to allow the command and the channel, also for a user who may do
// everything else. The replies are those of redis-server 7.0.15.
func TestChannelRights(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault,
		"user app on >pw ~* resetchannels +@all", "user watch on >pw resetchannels &__sentinel__:* -@all +subscribe +multi +exec +eval +publish",
		"user two on >pw resetchannels +@all -publish (+publish &__sentinel__:hello)", "user apart on >pw resetchannels +@all (&*)")
	const noChannel = "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
	noCommand := func(name string) string {
		return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n"
	}
	const publish = "PUBLISH " + hello + " x\r\n"
	for _, tt := range []struct{ user, in, want string }{
		{"app", "SUBSCRIBE " + hello + "\r\n" + publish + "PUBLISH a x\r\nUNSUBSCRIBE " + hello + "\r\n", noChannel + noChannel + noChannel + ended},
		{"app", "MULTI\r\n" + publish + "EXEC\r\n", "+OK\r\n" + noChannel + "-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"watch", "SUBSCRIBE " + hello + "\r\n", subscribed},
		{"watch", "SUBSCRIBE a\r\nSUBSCRIBE " + hello + " b\r\n" + publish + "UNSUBSCRIBE\r\n", noChannel + noChannel + ":0\r\n" + noCommand("unsubscribe")},
		{"watch", "SUBSCRIBE __sentinel__:other\r\n", elsewhere},
		{"two", publish + "SUBSCRIBE " + hello + "\r\n", ":0\r\n" + noChannel},
		{"apart", publish, noChannel},
	} {
		s := r.Login(tt.user)
		if got := commandstest.Say(t, s, tt.in); got != tt.want {
			t.Errorf("%s, %q: got %q, want %q", tt.user, tt.in, got, tt.want)
		}
		s.Close()
	}
	script := resptest.Encode("EVAL", "return redis.call('publish', ARGV[1], 'x')", "0", hello)
	if got := commandstest.Say(t, r.Login("app"), script); !strings.HasPrefix(got, "-ERR The user executing the script can't publish to the channel mentioned in the command") {
		t.Errorf("in a script: got %q", got)
	}
	s := r.Session()
	const denied = "This user has no permissions to access the '" + hello + "' channel"
	commandstest.Expect(t, s, "ACL DRYRUN app SUBSCRIBE "+hello+"\r\nACL DRYRUN watch SUBSCRIBE "+hello+"\r\n",
		strings.TrimPrefix(resptest.Encode(denied), "*1\r\n")+"+OK\r\n")
	log := commandstest.Say(t, s, "ACL LOG\r\n")
	if !strings.Contains(log, "$6\r\nreason\r\n$7\r\nchannel\r\n") || !strings.Contains(log, "$6\r\nobject\r\n$18\r\n"+hello+"\r\n") {
		t.Errorf("ACL LOG has %q", log)
	}
}
