package differential

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/resptest"
)

// sequencesEnv sets the number of command sequences.
const sequencesEnv = "CELLSERVER_TEST_SEQUENCES"

const (
	sequenceSteps = 60
	// bothUsers is the ACL file of both servers.
	bothUsers = `user alice on >wonderland ~a* %R~b* resetchannels -@all +@read +@connection +multi +exec +discard +eval +config|get
user bob on >builder ~* resetchannels +@all -@dangerous -client +client|setname -flushdb
user carol off >sesame ~* resetchannels +@all
user dave on nopass resetkeys resetchannels -@all +get (~key:* -@all +del +exists) (%W~b -@all +@write)
user default on PASSWORD sanitize-payload ~* resetchannels +@all
`
)

// TestCommandsAsRedis sends the same random calls of every common command to redis-server and cellserver,
// valid and invalid, from several connections, users and databases. The replies must be equal, apart from the
// exceptions.
func TestCommandsAsRedis(t *testing.T) {
	sequences := 400
	if racetest.OmitsLong() {
		sequences = 60
	}
	if racetest.IsQuick() {
		sequences = 30
	}
	if text := os.Getenv(sequencesEnv); text != "" {
		var err error
		if sequences, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := randtest.Seed(t, 1)
	var commands atomic.Int64
	var wg sync.WaitGroup
	passwords := []string{"nopass", ">sesame"}
	for n, password := range passwords {
		p := newPair(t, password)
		g := newGrammar(t, p)
		used := newUses(g.common)
		defer used.log(t)
		wg.Go(func() {
			for i := 1 + n; i <= sequences; i += len(passwords) {
				s := &sequence{pair: p, used: used, maker: callMaker{Rand: rand.New(rand.NewPCG(seed, uint64(i))), grammar: g}}
				err := s.run()
				commands.Add(int64(s.commands))
				if err != nil { // a cause of later failures
					t.Errorf("%s=%d, sequence %d, password %s: %v", randtest.Env, seed, i, password, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d sequences, %d commands", sequences, commands.Load())
}

// pair is two servers with the same users and an unrestricted connection to each.
type pair struct {
	ours, redis *harness.Process
	admin       *twin
	dialled     uint8
}

func newPair(t *testing.T, password string) *pair {
	t.Helper()
	aclFile := func() string { return harness.WriteFile(t, strings.Replace(bothUsers, "PASSWORD", password, 1)) }
	p := &pair{
		ours: harness.StartServer(t, "--enable-debug-command", "yes", "--aclfile", aclFile(),
			"--lua-time-limit", "1h"),
		redis: harness.StartRedis(t, "--enable-debug-command", "yes", "--aclfile", aclFile()),
	}
	p.admin = p.dial(t.Fatal)
	t.Cleanup(func() { p.admin.close() })
	if err := p.admin.login(); err != nil {
		t.Fatal(err)
	}
	return p
}

// twin is a connection to each server with the same input.
type twin struct {
	ours, redis half
	queued      [][]string // after MULTI
	multi       bool
}

type half struct {
	net.Conn
	r         *bufio.Reader
	id, other string // the client IDs of this and the other twin
}

func (p *pair) dial(fail func(...any)) *twin {
	connect := func(server *harness.Process, from net.Dialer) half {
		nc, err := from.Dial("tcp", server.Addr)
		if err != nil {
			fail(err)
		}
		nc = patience.Conn{Conn: nc}
		return half{Conn: nc, r: bufio.NewReader(nc)}
	}
	var from net.Dialer
	// each client has its own address, so that wrong passwords of others do not delay it
	if runtime.GOOS == "linux" {
		p.dialled++
		from.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, p.dialled)}
	}
	return &twin{ours: connect(p.ours, from), redis: connect(p.redis, net.Dialer{})}
}

func (c *twin) close() {
	_ = c.ours.Close()
	_ = c.redis.Close()
}

// renewAdmin reconnects after a kill.
func (p *pair) renewAdmin() error {
	var dialError error
	p.admin.close()
	p.admin = p.dial(func(why ...any) { dialError = fmt.Errorf("dial: %v", why) })
	if dialError != nil {
		return dialError
	}
	return p.admin.login()
}

// login authenticates as the default user, which accepts any password.
func (c *twin) login() error {
	for _, h := range []*half{&c.ours, &c.redis} {
		if got, err := h.do("AUTH", "default", "sesame"); err != nil || got.text != "OK" {
			return fmt.Errorf("%s: AUTH: %s %w", h.RemoteAddr(), got, err)
		}
	}
	return nil
}

func (h *half) do(args ...string) (value, error) {
	if err := h.send(false, args); err != nil {
		return value{}, err
	}
	return h.read()
}

// send writes a command and fills in its placeholders.
func (h *half) send(inline bool, args []string) error {
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.NewReplacer("{id}", h.id, "{other}", h.other, "{addr}", h.LocalAddr().String(),
			"{laddr}", h.RemoteAddr().String()).Replace(args[i])
	}
	b := resptest.Append(nil, args...)
	if inline {
		b = appendInline(nil, args)
	}
	_, err := h.Write(b)
	return err
}

// appendInline quotes arguments that are not plain words.
func appendInline(b []byte, args []string) []byte {
	for i, arg := range args {
		if i > 0 {
			b = append(b, ' ')
		}
		if arg != "" && arg[0] != '*' && !strings.ContainsFunc(arg, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\`, r) }) {
			b = append(b, arg...)
			continue
		}
		b = append(b, '"')
		for _, c := range []byte(arg) {
			b = fmt.Appendf(b, `\x%02x`, c)
		}
		b = append(b, '"')
	}
	return append(b, "\r\n"...)
}

// read reads a reply and skips push messages.
func (h *half) read() (value, error) {
	for {
		v, err := readValue(h.r)
		if err != nil {
			return v, err
		}
		if v.typ == '>' && len(v.elems) > 0 && v.elems[0].text == "invalidate" {
			continue
		}
		return v, nil
	}
}

type value struct {
	typ   byte   // of the protocol
	text  string // the line, or a string's bytes
	elems []value
	null  bool
}

func readValue(r *bufio.Reader) (v value, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return v, err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return v, fmt.Errorf("a reply's line %q", line)
	}
	v.typ, v.text = line[0], line[1:len(line)-2]
	count, _ := strconv.Atoi(v.text)
	switch v.typ {
	case '$', '=':
		if v.null = count < 0; !v.null {
			text := make([]byte, count+2)
			_, err = io.ReadFull(r, text)
			v.text = string(text[:count])
		}
		return v, err
	case '%', '|':
		count *= 2
	case '*', '~', '>':
	default:
		return v, nil
	}
	v.null = count < 0
	for range count {
		elem, err := readValue(r)
		if err != nil {
			return v, err
		}
		v.elems = append(v.elems, elem)
	}
	if v.typ == '|' { // precedes the actual value
		elem, err := readValue(r)
		v.elems = append(v.elems, elem)
		return v, err
	}
	return v, nil
}

// String formats the reply uniquely.
func (v value) String() string {
	if v.null {
		return fmt.Sprintf("%c null", v.typ)
	}
	if v.elems == nil {
		return fmt.Sprintf("%c%q", v.typ, v.text)
	}
	texts := make([]string, len(v.elems))
	for i, elem := range v.elems {
		texts[i] = elem.String()
	}
	return fmt.Sprintf("%c[%s]", v.typ, strings.Join(texts, " "))
}
