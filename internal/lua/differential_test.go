package lua

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/redistest"
)

// A realServer is a redis-server of the machine.
type realServer struct {
	conn net.Conn
	r    *bufio.Reader
}

func startRealServer(t *testing.T) *realServer {
	t.Helper()
	conn, err := net.Dial("unix", redistest.Start(t).Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	conn = patience.Conn{Conn: conn}
	return &realServer{conn, bufio.NewReader(conn)}
}

func (s *realServer) do(t *testing.T, args ...string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(s.conn, b.String()); err != nil {
		t.Fatal(err)
	}
	return s.reply(t)
}

// reply reads one reply and returns its bytes.
func (s *realServer) reply(t *testing.T) string {
	t.Helper()
	line, err := s.r.ReadString('\n')
	if err != nil {
		t.Fatal("redis-server went away: ", err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	items := 0
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			rest := make([]byte, n+2)
			if _, err := io.ReadFull(s.r, rest); err != nil {
				t.Fatal(err)
			}
			return line + string(rest)
		}
	case '*', '~':
		items = n
	case '%':
		items = 2 * n
	}
	for range max(items, 0) {
		line += s.reply(t)
	}
	return line
}

// readScripts reads the scripts of testdata: one a line, and those of several lines between lines of dashes.
func readScripts(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/scripts.txt")
	if err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for i, part := range strings.Split(string(data), "----\n") {
		if i%2 == 1 {
			scripts = append(scripts, strings.TrimSuffix(part, "\n"))
			continue
		}
		for line := range strings.Lines(part) {
			scripts = append(scripts, strings.TrimSuffix(line, "\n"))
		}
	}
	return scripts
}

// TestLikeRedis runs each script here and on a real server: the replies must be the same bytes.
func TestLikeRedis(t *testing.T) {
	redis := startRealServer(t)
	e := patientEngine()
	for _, resp3 := range []bool{false, true} {
		if resp3 {
			redis.do(t, "HELLO", "3")
		}
		for _, source := range readScripts(t) {
			redis.do(t, "FLUSHALL")
			want := redis.do(t, "EVAL", source, "1", "key", "7", "two")
			got := evalWith(e, source, resp3)
			if got != want {
				t.Errorf("RESP3 %v: %s\n got %q\nwant %q", resp3, source, got, want)
			}
		}
	}
}

func evalWith(e *Engine, source string, resp3 bool) string {
	s, err := e.Evaluate([]byte(source))
	if err != nil {
		return "-" + err.Error() + "\r\n"
	}
	reply, _ := e.Run(context.Background(), s, byteSlices("key"), byteSlices("7", "two"), &fakeHost{}, resp3, nil)
	return string(reply)
}

// TestAbsentNamesAreDocumented: what scripts of Redis can call and ours cannot is in docs/COMPATIBILITY.md.
func TestAbsentNamesAreDocumented(t *testing.T) {
	redis := startRealServer(t)
	names := redis.do(t, "EVAL", `local all = {}
		for name, v in pairs(_G) do
			all[#all+1] = name
			if type(v) == 'table' and v ~= _G then for field in pairs(v) do all[#all+1] = name .. '.' .. field end end
		end
		return table.concat(all, ' ')`, "0")
	text, err := os.ReadFile("../../docs/COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, document, _ := strings.Cut(string(text), "\n## Scripts\n")
	document, _, _ = strings.Cut(document, "\n## ")
	e, absent := patientEngine(), 0
	for _, name := range strings.Fields(names)[1:] {
		library, field, isField := strings.Cut(name, ".")
		there := func(of string) bool {
			got := evalWith(e, "return tostring(pcall(function() assert("+of+" ~= nil) end))", false)
			return got == "$4\r\ntrue\r\n"
		}
		if strings.HasPrefix(name, "__") || there(name) {
			continue
		}
		absent++
		has := func(of string) bool { return strings.Contains(document, "`"+of+"`") }
		inLibrary := isField && has(library) && (!there(library) || has(field))
		if !has(name) && !inLibrary {
			t.Errorf("%s does not exist here, and the document does not say so", name)
		}
	}
	if absent < 20 {
		t.Errorf("%d of %q are absent", absent, names)
	}
}
