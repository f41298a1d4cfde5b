package connection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const (
	openDefault   = "user default on nopass ~* &* +@all"
	maxClientText = 1 << 10
)

// clientRig returns an engine with clients 1 and 2 of one host, the second of user app, and 3 on a unix
// socket.
func clientRig(t *testing.T) (r *commandstest.UserHarness, all []*commandstest.Client) {
	t.Helper()
	r = commandstest.NewUserHarness(t, openDefault, "user app on >pw ~* +@all")
	for _, p := range []peer.Peer{
		{Addr: "192.0.2.1:1", LocalAddr: "192.0.2.2:6380"},
		{Addr: "192.0.2.1:2", LocalAddr: "192.0.2.3:6380"},
		{Addr: "/run/s:0", LocalAddr: "/run/s:0", Unix: true},
	} {
		all = append(all, r.SessionOf(p))
	}
	commandstest.Say(t, all[1], "AUTH app pw\r\nSELECT 3\r\nCLIENT SETNAME second\r\nWATCH a b\r\nMULTI\r\nPING\r\n")
	commandstest.Say(t, all[2], "HELLO 3\r\nCLIENT TRACKING ON OPTIN\r\nCLIENT NO-EVICT ON\r\nCLIENT NO-TOUCH ON\r\nCL.THROTTLE a 1 1 1\r\n")
	return r, all
}

// TestClientList shows every session's properties.
func TestClientList(t *testing.T) {
	r, all := clientRig(t)
	silent := r.Session()
	r.Clock.Advance(7 * commandstest.Sec)
	lines := strings.Split(strings.TrimSuffix(resptest.ParseAll(t, commandstest.Say(t, all[0], "CLIENT LIST\r\n"))[0].Text, "\n"), "\n")
	for i, want := range []string{
		"id=1 addr=192.0.2.1:1 laddr=192.0.2.2:6380 name= age=7 idle=0 flags=N db=0 multi=-1 watch=0 cmd=client|list user=default redir=-1 resp=2",
		"id=2 addr=192.0.2.1:2 laddr=192.0.2.3:6380 name=second age=7 idle=7 flags=x db=3 multi=1 watch=2 cmd=ping user=app redir=-1 resp=2",
		"id=3 addr=/run/s:0 laddr=/run/s:0 name= age=7 idle=7 flags=UteT db=0 multi=-1 watch=0 cmd=cl.throttle user=default redir=0 resp=3",
		"id=4 addr=192.0.2.1:5000 laddr=192.0.2.2:6380 name= age=7 idle=7 flags=N db=0 multi=-1 watch=0 cmd=NULL user=default redir=-1 resp=2",
	} {
		fields := strings.Fields(lines[i])
		for field := range strings.FieldsSeq(want) {
			if !slices.Contains(fields, field) {
				t.Errorf("%q lacks %s", lines[i], field)
			}
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d lines", len(lines))
	}
	commandstest.Say(t, all[1], "DISCARD\r\n")
	commandstest.ExpectLike(t, all[1], "CLIENT INFO\r\n", "… multi=-1 watch=0 …")
	commandstest.ExpectLike(t, silent, "CLIENT INFO\r\n", "…id=4 … idle=0 …")
}

// TestClientListFilters: CLIENT LIST and CLIENT KILL select the same clients.
func TestClientListFilters(t *testing.T) {
	for _, tt := range []struct {
		filter string
		list   string // clients that CLIENT LIST shows to the first one
		kill   string // clients that CLIENT KILL ends, with itself as 1
	}{
		{"", "1 2 3", "-ERR wrong number of arguments for 'client|kill' command"},
		{" TYPE normal", "1 2 3", "2 3"},
		{" type PUBSUB", "", ""},
		{" TYPE master", "", ""},
		{" TYPE x", "-ERR Unknown client type 'x'", "-ERR Unknown client type 'x'"},
		{" ID 2", "2", "2"},
		{" ID 1", "1", ""},
		{" ID 99", "", ""},
		{" ID 3 2 2", "3 2", "-ERR syntax error"},
		{" ID 0", "", "-ERR client-id should be greater than 0"},
		{" ID x", "-ERR Invalid client ID", "-ERR client-id should be greater than 0"},
		{" ID", "-ERR syntax error", "-ERR No such client"},
		{" ADDR 192.0.2.1:2", "-ERR syntax error", "2"},
		{" LADDR 192.0.2.3:6380", "-ERR syntax error", "2"},
		{" USER app", "-ERR syntax error", "2"},
		{" USER default", "-ERR syntax error", "3"},
		{" USER nobody", "-ERR syntax error", "-ERR No such user 'nobody'"},
		{" USER default SKIPME no", "-ERR syntax error", "1 3"},
		{" SKIPME yes", "-ERR syntax error", "2 3"},
		{" SKIPME no", "-ERR syntax error", "1 2 3"},
		{" SKIPME maybe", "-ERR syntax error", "-ERR syntax error"},
		{" ID 1 SKIPME no", "-ERR Invalid client ID", "1"},
		{" USER app TYPE normal ID 2", "-ERR syntax error", "2"},
		{" USER app ID 3", "-ERR syntax error", ""},
		{" 192.0.2.1:2", "-ERR syntax error", "2 OK"},
		{" 192.0.2.1:1", "-ERR syntax error", "1 OK"},
		{" 192.0.2.1:9", "-ERR syntax error", "-ERR No such client"},
		{" NOSUCH x", "-ERR syntax error", "-ERR syntax error"},
	} {
		t.Run(tt.filter, func(t *testing.T) {
			_, all := clientRig(t)
			list := resptest.ParseAll(t, commandstest.Say(t, all[0], "CLIENT LIST"+tt.filter+"\r\n"))[0]
			shown := "-" + list.Text
			if list.Kind != '-' {
				var ids []string
				for line := range strings.Lines(list.Text) {
					id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
					ids = append(ids, id)
				}
				shown = strings.Join(ids, " ")
			}
			if shown != tt.list {
				t.Errorf("CLIENT LIST shows %q, want %q", shown, tt.list)
			}
			got, left, status := commandstest.Converse(t, all[0], "CLIENT KILL"+tt.filter+"\r\nPING\r\n")
			var ended []string
			if status == peer.Close {
				ended = append(ended, "1")
			}
			for i, s := range all[1:] {
				if s.Conn.Killed.Load() {
					ended = append(ended, fmt.Sprint(i+2))
				}
			}
			want := strings.TrimSuffix(tt.kill, " OK")
			reply := fmt.Sprintf(":%d\r\n", len(ended))
			switch {
			case strings.HasPrefix(tt.kill, "-"):
				reply, want = tt.kill+"\r\n", ""
			case want != tt.kill:
				reply = "+OK\r\n"
			}
			if status != peer.Close {
				reply += commandstest.Pong
			}
			if got != reply || strings.Join(ended, " ") != want || (status == peer.Close) != (left != "") {
				t.Errorf("CLIENT KILL ends %q, left %q, and replies %q; want %q and %q", ended, left, got, tt.kill, reply)
			}
			if all[0].Conn.Killed.Load() {
				t.Error("its own connection ends before its reply")
			}
		})
	}
}

// TestClientTypes: a replica and a subscriber are not normal, one in MONITOR is.
func TestClientTypes(t *testing.T) {
	r := commandstest.New()
	self, replica, subscriber, both, monitor := r.Session(), r.Session(), r.Session(), r.Session(), r.Session()
	for _, s := range []*commandstest.Client{subscriber, both} {
		commandstest.Say(t, s, "HELLO 3\r\nSUBSCRIBE "+hello+"\r\n")
	}
	commandstest.Say(t, monitor, "MONITOR\r\n")
	for _, id := range []int64{2, 4, 5} {
		clientOf(r, id).Change(func(i *clients.Info) { i.Replica = true })
	}
	ids := func(list string) (ids string) {
		for line := range strings.Lines(list) {
			if f := strings.Fields(line); len(f) > 10 {
				ids += strings.TrimPrefix(f[0], "id=") + " " + f[7] + " " + f[9] + "\n"
			}
		}
		return ids
	}
	for _, tt := range []struct{ kind, want string }{
		{"normal", "1 flags=N sub=0\n5 flags=O sub=0\n"}, {"replica", "2 flags=S sub=0\n4 flags=SP sub=1\n"},
		{"SLAVE", "2 flags=S sub=0\n4 flags=SP sub=1\n"}, {"pubsub", "3 flags=P sub=1\n"}, {"master", ""},
	} {
		if got := ids(resptest.ParseAll(t, commandstest.Say(t, self, "CLIENT LIST TYPE "+tt.kind+"\r\n"))[0].Text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.kind, got, tt.want)
		}
	}
	for _, tt := range []struct {
		kind string
		want []bool // killed
	}{
		{"master", []bool{false, false, false, false}}, {"normal", []bool{false, false, false, true}},
		{"pubsub", []bool{false, true, false, true}}, {"replica", []bool{true, true, true, true}},
	} {
		commandstest.Say(t, self, "CLIENT KILL TYPE "+tt.kind+"\r\n")
		for i, s := range []*commandstest.Client{replica, subscriber, both, monitor} {
			if got := s.Conn.Killed.Load(); got != tt.want[i] {
				t.Errorf("after %s: client %d closed %t", tt.kind, i+2, got)
			}
		}
	}
	commandstest.Say(t, both, "RESET\r\n")
	if info := clientOf(r, 4).Info(); info.Type() != clients.Normal {
		t.Error("RESET has not reset the type")
	}
}

// TestKillItselfInATransaction: the replies come first.
func TestKillItselfInATransaction(t *testing.T) {
	for _, more := range []string{"", "DBSIZE\r\n"} { // at once, and in the background
		s := commandstest.New().Session()
		got, _, status := commandstest.Converse(t, s, "MULTI\r\nCLIENT KILL ID 1 SKIPME no\r\n"+more+"PING\r\nEXEC\r\nPING\r\n")
		if !strings.HasSuffix(got, commandstest.Pong) || !strings.Contains(got, "\r\n:1\r\n") || strings.Count(got, commandstest.Pong) != 1 || status != peer.Close {
			t.Errorf("%q: got %q, status %d", more, got, status)
		}
	}
}

// TestClientText bounds names that clients give themselves.
func TestClientText(t *testing.T) {
	longest := strings.Repeat("n", maxClientText)
	for _, tt := range []struct{ in, want string }{
		{resptest.Encode("CLIENT", "SETNAME", longest) + "CLIENT GETNAME\r\n", "+OK\r\n$1024\r\n" + longest + "\r\n"},
		{resptest.Encode("CLIENT", "SETNAME", longest+"n") + "CLIENT GETNAME\r\n", "-ERR Client names cannot be longer than 1024 bytes.\r\n$-1\r\n"},
		{resptest.Encode("CLIENT", "SETINFO", "lib-name", longest), "+OK\r\n"},
		{resptest.Encode("CLIENT", "SETINFO", "lib-ver", longest+"n"), "-ERR lib-ver cannot be longer than 1024 bytes.\r\n"},
		{resptest.Encode("HELLO", "2", "SETNAME", longest+"n"), "-ERR Client names cannot be longer than 1024 bytes.\r\n"},
	} {
		commandstest.Expect(t, commandstest.New().Session(), tt.in, tt.want)
	}
}

// TestClientKillHasFewFilters, as each is compared with each client.
func TestClientKillHasFewFilters(t *testing.T) {
	s := commandstest.New().Session()
	most := "CLIENT KILL" + strings.Repeat(" ID 99", 64)
	commandstest.Expect(t, s, most+"\r\n"+most+" ID 99\r\n",
		":0\r\n-ERR more than 64 filters; send several CLIENT KILLs\r\n")
}
