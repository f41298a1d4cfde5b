package httpapi_test

import (
	"strings"
	"testing"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/http1"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// visitor is a client of an API without a connection, who sends one request again and again.
type visitor struct {
	api     *httpapi.API
	users   *acl.Users
	tokens  door.Tokens
	session *commandstest.Client
	x       httpapi.Exchange
	body    []byte // is overwritten once it is read; nil to keep it
	out     []byte
}

func (*visitor) Peer() peer.Peer { return peer.Peer{Addr: "127.0.0.1:5000", Door: peer.HTTP} }

func (v *visitor) User(token string) (*acl.User, error) {
	if token == "" {
		return nil, nil
	}
	if user := v.users.Lookup(v.tokens.User(token)); user != nil {
		return user, nil
	}
	return nil, door.ErrToken
}

func (*visitor) IsStranger(*acl.User) bool { return false }
func (*visitor) IsOperator(*acl.User) bool { return true }

func newVisitor(t testing.TB) *visitor {
	t.Helper()
	o := options{users: anyone + "user app on nopass ~* +@all\n", engine: []func(*commands.Config){commandstest.Standing}}
	h := newHarness(t, &o)
	v := &visitor{users: h.Config.Users, session: h.Session()}
	if err := v.tokens.Set([]byte(token + " app\n")); err != nil {
		t.Fatal(err)
	}
	h.resp = h.Session()
	h.say(t, "CL.LIMIT SET api 999999 1000000 60", "CL.LIMIT SET full 0 1 86400", "CL.CHECK full u", "CL.LIMIT SET two 999999 1000000 60 99999999 10000000 3600",
		"CL.LIMIT SET windows FIXEDWINDOW 1 3600 FIXEDWINDOW 2 86400", "CL.CHECK windows u", "CL.LIMIT OVERRIDE api mallory DENY")
	c := httpapi.Config{Limits: h.Config.NamedLimits, Headers: httpapi.Both, IPv6PrefixBits: 64}
	trusting("127.0.0.0/8")(&c)
	v.api = httpapi.New(c)
	v.x.Client = v
	return v
}

// do has a request answered, which is of v.x.
func (v *visitor) do(body []byte) {
	x := &v.x
	if v.api.Admit(x) {
		if x.TakesBody() {
			x.Request.Body = body
		}
		if asked := v.api.Begin(x); asked != nil {
			for i := range v.body {
				v.body[i] = '!'
			}
			v.session.Become(x.User)
			for status := v.session.Ask(asked); status != peer.NeedInput; status = v.session.Ask(asked) {
				if status == peer.Waiting {
					<-v.session.Conn.Woken
				}
			}
			v.api.Decided(x)
		}
	}
	v.out = x.Answer.AppendFields(v.out[:0])
}

// asking sets a GET of a path with a query.
func (v *visitor) asking(path string, fields ...http1.Field) {
	path, query, _ := strings.Cut(path, "?")
	v.x.Request = http1.Request{Method: "GET", Path: path, Query: query, Host: "localhost", Fields: append(fields,
		http1.Field{Name: "User-Agent", Value: "test"}, http1.Field{Name: "x-cellserver-TOKEN", Value: token})}
}

// gets are checks by GET, with the status that they get.
func gets() map[string]int {
	return map[string]int{
		"api?key=u": 200, "full?key=u": 429, "full?key=u&denied=403": 403, "two?key=u": 200, "windows?key=u": 429, "api?key=mallory": 429,
		"api?by=ip": 200, "api?by=header:x-api-key": 200, "api?by=ip,header:x-api-key": 200,
	}
}

// TestChecksDoNotAllocate: what answers a check is kept from request to request.
func TestChecksDoNotAllocate(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	v := newVisitor(t)
	for query, status := range gets() {
		v.asking("/v1/check/"+query, http1.Field{Name: "x-forwarded-for", Value: "192.0.2.1"}, http1.Field{Name: "X-Api-Key", Value: "acme"})
		if n := testing.AllocsPerRun(100, func() { v.do(nil) }); n != 0 {
			t.Errorf("%s: %v allocations", query, n)
		}
		if v.x.Answer.Status != status {
			t.Errorf("%s: got %d, want %d: %s", query, v.x.Answer.Status, status, v.x.Answer.Body)
		}
	}
	for name, body := range posts() {
		v.posting()
		sent := []byte(body)
		if n := testing.AllocsPerRun(100, func() { v.do(sent) }); n != 0 {
			t.Errorf("%s: %v allocations", body, n)
		}
		if got := v.x.Answer.Status; got != 200 && got != 429 {
			t.Errorf("%s: got %d: %s", name, got, v.x.Answer.Body)
		}
	}
}

// posts are checks by POST.
func posts() map[string]string {
	return map[string]string{
		"named": `{"limit":"api","key":"u"}`, "denied": `{"limit":"full","key":"u"}`, "own": `{"key":"k","algorithm":"funnel","max_burst":999999,"count":1000000,"period":60}`,
		"window": `{"key":"w","algorithm":"fixed_window","max_count":1,"period":3600,"quantity":2}`,
	}
}

func (v *visitor) posting() {
	v.asking("/v1/check", http1.Field{Name: "Content-Type", Value: "application/json"})
	v.x.Request.Method = "POST"
}

func BenchmarkGet(b *testing.B) {
	for query := range gets() {
		b.Run(query, func(b *testing.B) {
			v := newVisitor(b)
			v.asking("/v1/check/"+query, http1.Field{Name: "X-Forwarded-For", Value: "192.0.2.1"}, http1.Field{Name: "X-Api-Key", Value: "acme"})
			b.ReportAllocs()
			for b.Loop() {
				v.do(nil)
			}
		})
	}
}

func BenchmarkPost(b *testing.B) {
	for name, body := range posts() {
		b.Run(name, func(b *testing.B) {
			v := newVisitor(b)
			v.posting()
			sent := []byte(body)
			b.ReportAllocs()
			for b.Loop() {
				v.do(sent)
			}
		})
	}
}
