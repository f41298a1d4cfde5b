package observe

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"cellserver/internal/wire/catalog"
)

func counts(e *ErrorReplies) map[string]int64 {
	all := map[string]int64{}
	e.Each(func(code string, n int64) { all[code] = n })
	return all
}

func TestErrorReplies(t *testing.T) {
	var e ErrorReplies
	for _, text := range []string{"ERR a", "ERR b", "ERR", "Cell error: c", "MY own", "MY other", ""} {
		e.Count(ErrorReply{Text: text})
	}
	if want := map[string]int64{"ERR": 3, "Cell": 1, "MY": 2, "": 1}; !maps.Equal(counts(&e), want) || e.Counts().Total != 7 {
		t.Errorf("got %v, %d together", counts(&e), e.Counts().Total)
	}
	own := e.byOwnCode()
	if len(own) != len(ownCodes())+1 || own["ERR"] != 3 || own["Cell"] != 1 || own[otherCode] != 3 || own["NOAUTH"] != 0 {
		t.Errorf("got %v", own)
	}
	e.reset()
	if len(counts(&e)) != 0 || e.Counts().Total != 0 || e.Counts().Ever != 7 {
		t.Errorf("after reset: %v, %d together, %d since the start", counts(&e), e.Counts().Total, e.Counts().Ever)
	}
}

// TestProbes: what clients ask to learn what the server is counts under no code, and is not the last error.
func TestProbes(t *testing.T) {
	var e ErrorReplies
	for _, call := range []string{"SENTINEL MASTERS", "cluster nodes", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip"} {
		e.Count(ErrorReply{Text: "ERR refused", Args: bytes.Fields([]byte(call))})
	}
	if all := e.Counts(); all != (ErrorCounts{Total: 3, Ever: 3}) || len(counts(&e)) != 0 || e.Last() != (LastError{}) {
		t.Errorf("got %+v, %v, last %+v", all, counts(&e), e.Last())
	}
	for _, call := range []string{"SENTINEL get-master-addr-by-name x", "CLUSTER SLOTS", "CLIENT", "SENTINEL", "SADD a b"} {
		e.Count(ErrorReply{Text: "ERR refused", Args: bytes.Fields([]byte(call))})
	}
	e.Count(ErrorReply{Text: "NOAUTH Authentication required.", Args: bytes.Fields([]byte("SENTINEL MASTERS"))})
	if own := e.byOwnCode(); own["ERR"] != 5 || own["NOAUTH"] != 1 || own[otherCode] != 3 {
		t.Errorf("got %v", own)
	}
}

// TestErrorCodesAreBounded: invented codes cannot fill the memory, and the server's own are still counted.
func TestErrorCodesAreBounded(t *testing.T) {
	var e ErrorReplies
	e.Count(ErrorReply{Text: strings.Repeat("x", maxCodeBytes+1) + " error"})
	for i := range 10_000 {
		e.Count(ErrorReply{Text: fmt.Sprintf("C%d error", i)})
	}
	all := counts(&e)
	if len(all) != maxCodes || all[strings.Repeat("x", maxCodeBytes)] != 1 || e.Counts().Total != 10_001 {
		t.Errorf("%d codes, of %d errors", len(all), e.Counts().Total)
	}
	for range 2 {
		e.Count(ErrorReply{Text: "C0 error"})
		e.Count(ErrorReply{Text: "NOPERM error"})
	}
	if all := counts(&e); all["C0"] != 3 || all["NOPERM"] != 2 || len(all) != maxCodes+1 {
		t.Errorf("%d of a known code, %d of our own, %d codes", all["C0"], all["NOPERM"], len(all))
	}
}

type erring struct{ addr, name string }

func (e erring) Addr() string { return e.addr }
func (e erring) Name() string { return e.name }

// TestLastError: calls are shown as by MONITOR, without passwords, also in a misspelled AUTH.
func TestLastError(t *testing.T) {
	table := catalog.New()
	many := strings.Repeat("abcdefghij ", 9)
	for _, tt := range []struct{ command, call, text, wantCall, wantText string }{
		{"cl.throttle", "CL.THROTTLE k x 1 1", "ERR syntax error", "CL.THROTTLE k x 1 1", "ERR syntax error"},
		{"incr", "INCR k", "ERR no 'k'", "INCR k", "ERR no 'k'"},
		{"", "AUHT secret", "ERR unknown command 'AUHT', with args beginning with: 'secret' ", "AUHT", "ERR unknown command 'AUHT'"},
		{"", "CONFIG ste requirepass secret", "ERR unknown subcommand 'ste'. Try CONFIG HELP.", "CONFIG", "ERR unknown subcommand 'ste'. Try CONFIG HELP."},
		{"auth", "AUTH name secret", "WRONGPASS invalid username-password pair", "AUTH (redacted) (redacted)", "WRONGPASS invalid username-password pair"},
		{"hello", "HELLO 3 AUTH a secret secret", "ERR Syntax error in HELLO option 'secret'", "HELLO", "ERR Syntax error in HELLO option (redacted)"},
		{"hello", "HELLO 3 AUHT a secret", "ERR Syntax error in HELLO option 'AUHT'", "HELLO", "ERR Syntax error in HELLO option (redacted)"},
		{"acl|load", "ACL LOAD", "ERR line 3: '>secret'", "ACL LOAD", "ERR line 3: (redacted)"},
		{"config|set", "CONFIG SET requirepass secret", `ERR CONFIG SET failed - invalid "secret"`, "CONFIG SET", "ERR CONFIG SET failed - invalid (redacted)"},
		{"exec", "", "EXECABORT because", "EXEC", "EXECABORT because"},
		{"", "", "ERR Protocol error: x", "", "ERR Protocol error: x"},
		{"echo", "ECHO " + many, "ERR " + many, "ECHO" + strings.Repeat(" abcdefghij", 7) + " ... (2 more arguments)", "ERR " + many},
		{"echo", "ECHO " + strings.Repeat("x", 1000), strings.Repeat("y", 1000), "ECHO " + strings.Repeat("x", 40) + "... (960 more bytes)", strings.Repeat("y", 240)},
		{"echo", "ECHO \x00\xff\x1b[31m", "ERR \x1b[31m\xff", `ECHO "\x00\xff\x1b[31m"`, `ERR \x1b[31m\xff`},
	} {
		var e ErrorReplies
		args := bytes.Fields([]byte(tt.call))
		command := table.LookupFull([]byte(tt.command))
		e.Count(ErrorReply{Text: tt.text, Command: command, Args: args, By: erring{"10.0.0.1:5000", "a\nb"}})
		want := LastError{tt.wantText, tt.wantCall, "10.0.0.1:5000", `a\nb`}
		if got := e.Last(); got != want {
			t.Errorf("%s: got %q, want %q", tt.call, got, want)
		}
		if after := string(bytes.Join(args, []byte(" "))); after != strings.TrimSpace(tt.call) {
			t.Errorf("%s became %s", tt.call, after)
		}
	}
	var e ErrorReplies
	if got := e.Last(); got != (LastError{}) {
		t.Errorf("without an error: %+v", got)
	}
}

// TestErrorFloodIsCheap: an error with a known code allocates nothing, however long its quotation.
func TestErrorFloodIsCheap(t *testing.T) {
	var e ErrorReplies
	r := ErrorReply{
		Text: "ERR " + strings.Repeat("x", 100_000), Command: catalog.New().Lookup([]byte("echo")),
		By:   erring{strings.Repeat("a", 1000), strings.Repeat("n", 1000)},
		Args: bytes.Split(bytes.Repeat([]byte(strings.Repeat("y", 1000)+" "), 1000), []byte(" ")),
	}
	e.Count(r)
	if n := testing.AllocsPerRun(100, func() { e.Count(r) }); n != 0 {
		t.Errorf("an error allocates %g times", n)
	}
	kept := cap(e.last.text) + cap(e.last.client) + cap(e.last.name)
	for _, arg := range e.last.args {
		kept += cap(arg)
	}
	if kept > 1024 {
		t.Errorf("the last error takes %d bytes", kept)
	}
	if last := e.Last(); len(last.Text)+len(last.Command)+len(last.Client)+len(last.Name) > 1024 {
		t.Errorf("more than 1 KiB of the last error is shown: %+v", last)
	}
}
