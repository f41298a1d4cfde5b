package observe

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
)

// ErrorReplies counts error replies by code and keeps the last one. It is safe for concurrent use.
type ErrorReplies struct {
	mu     sync.Mutex // rank 90: guards all below
	byCode map[string]*int64
	total  int64
	ever   uint64 // since the start, despite resets
	// unknown counts error replies about commands that exist nowhere.
	unknown int64
	last    lastError
}

// ownCodes returns this server's own codes.
func ownCodes() []string {
	return []string{
		"ERR", "BUSYKEY", "Cell", "EXECABORT", "LOADING", "MISCONF", "NOAUTH", "NOPERM", "NOPROTO",
		"NOSCRIPT", "NOTBUSY", "OOM", "STOREDOWN", "UNBLOCKED", "WRONGPASS", "WRONGTYPE",
	}
}

// otherCode stands for codes made up by clients' scripts, and for probes.
const otherCode = "other"

// Bounds for the other codes, which clients choose.
const (
	maxCodes     = 128
	maxCodeBytes = 64
)

// Count counts a reply and keeps its public part. It allocates for a new code, and to hide a password.
func (e *ErrorReplies) Count(r ErrorReply) {
	if catalog.IsProbe(r.Args) && strings.HasPrefix(r.Text, "ERR ") {
		e.countOther()
		return
	}
	code, _, _ := strings.Cut(r.Text[:min(len(r.Text), maxCodeBytes)], " ")
	shown := r.shown()
	var addr, name string
	if r.By != nil {
		addr, name = r.By.Addr(), r.By.Name()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.ever++
	if r.Command == nil && len(r.Args) > 0 {
		e.unknown++
	}
	e.last.keep(&shown, addr, name)
	n := e.byCode[code]
	if n == nil {
		if len(e.byCode) >= maxCodes && !slices.Contains(ownCodes(), code) {
			return
		}
		if e.byCode == nil {
			e.byCode = map[string]*int64{}
		}
		n = new(int64)
		e.byCode[strings.Clone(code)] = n
	}
	*n++
}

// countOther counts an error that tells of no fault, under no code.
func (e *ErrorReplies) countOther() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.ever++
}

func (e *ErrorReplies) Each(visit func(code string, n int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for code, n := range e.byCode {
		visit(code, *n)
	}
}

type ErrorCounts struct {
	Total   int64  // since the last reset
	Ever    uint64 // since the start
	Owned   uint64 // of Total, those with this server's own codes, without NOSCRIPT, which asks a library for its script
	Unknown int64  // of Total, those about unknown commands
}

func (e *ErrorReplies) Counts() ErrorCounts {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := ErrorCounts{Total: e.total, Ever: e.ever, Unknown: e.unknown}
	for _, code := range ownCodes() {
		if count := e.byCode[code]; count != nil && code != "NOSCRIPT" {
			c.Owned += uint64(*count)
		}
	}
	return c
}

func (e *ErrorReplies) Last() LastError {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last.public()
}

// byOwnCode returns the counts of this server's codes and the sum of all others.
func (e *ErrorReplies) byOwnCode() map[string]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := map[string]uint64{otherCode: uint64(e.total)}
	for _, code := range ownCodes() {
		if n := e.byCode[code]; n != nil {
			counts[code] = uint64(*n)
			counts[otherCode] -= counts[code]
		} else {
			counts[code] = 0
		}
	}
	return counts
}

func (e *ErrorReplies) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byCode, e.total, e.unknown = nil, 0, 0
}

// ErrorReply is an error reply with its call and client.
type ErrorReply struct {
	Text    string
	Command *catalog.Command // nil if unknown
	Args    [][]byte         // empty if unavailable or no command
	By      Caller
}

// LastError is the public part of an error reply: truncated, printable, without passwords.
type LastError struct {
	Text         string
	Command      string // the call
	Client, Name string // address and chosen name
}

// Bounds of the last error.
const (
	maxErrorBytes       = 240 // of the text
	maxErrorArgs        = 8
	maxErrorArgBytes    = 40
	maxErrorClientBytes = 64 // of the address and of the name
)

// shown hides secrets. The call is shown as by MONITOR, but only the name of unknown commands, which may be a
// mistyped AUTH, of administrative ones, and of HELLO, whose AUTH may be mistyped.
func (r ErrorReply) shown() ErrorReply {
	switch {
	case r.Command == nil:
		r.Args = r.Args[:min(len(r.Args), 1)]
		r.Text, _, _ = strings.Cut(r.Text, ", with args beginning with")
	case r.Command.Flags&catalog.FlagAdmin != 0 || r.Command.FullName() == "hello":
		r.Args, r.Text = nil, withoutQuoted(r.Text)
	case len(r.Args) > 0:
		redacted := Redacted(r.Command, r.Args)
		if &redacted[0] != &r.Args[0] { // something was hidden
			r.Args, r.Text = redacted, withoutQuoted(r.Text)
		}
	}
	return r
}

// withoutQuoted cuts an error's text before its quotation of the call.
func withoutQuoted(text string) string {
	if at := strings.IndexAny(text, "'\""); at >= 0 {
		return text[:at] + "(redacted)"
	}
	return text
}

// lastError keeps the last error in reused buffers, so that a flood of errors allocates nothing.
type lastError struct {
	command            *catalog.Command
	text, client, name []byte
	args               [maxErrorArgs][]byte
	argBytes           [maxErrorArgs]int // before truncation
	n                  int               // number of arguments
}

func (l *lastError) keep(r *ErrorReply, addr, name string) {
	l.command, l.n = r.Command, len(r.Args)
	l.text = append(l.text[:0], r.Text[:min(len(r.Text), maxErrorBytes)]...)
	l.client = append(l.client[:0], addr[:min(len(addr), maxErrorClientBytes)]...)
	l.name = append(l.name[:0], name[:min(len(name), maxErrorClientBytes)]...)
	for i := range min(len(r.Args), maxErrorArgs) {
		arg := r.Args[i]
		l.args[i] = append(l.args[i][:0], arg[:min(len(arg), maxErrorArgBytes)]...)
		l.argBytes[i] = len(arg)
	}
}

func (l *lastError) public() LastError {
	printable := func(b []byte, maxBytes int) string {
		return resp.PrintableN(b, 4*maxBytes) // an escaped byte takes four
	}
	e := LastError{
		Text:   printable(l.text, maxErrorBytes),
		Client: printable(l.client, maxErrorClientBytes), Name: printable(l.name, maxErrorClientBytes),
	}
	if l.n == 0 && l.command != nil {
		e.Command = strings.ToUpper(strings.ReplaceAll(l.command.FullName(), "|", " "))
	}
	words := make([]string, 0, maxErrorArgs+1)
	for i := range min(l.n, maxErrorArgs) {
		word := resp.Quote(l.args[i])
		if left := l.argBytes[i] - len(l.args[i]); left > 0 {
			word += "... (" + strconv.Itoa(left) + " more bytes)"
		}
		words = append(words, word)
	}
	if left := l.n - maxErrorArgs; left > 0 {
		words = append(words, "... ("+strconv.Itoa(left)+" more arguments)")
	}
	if len(words) > 0 {
		e.Command = strings.Join(words, " ")
	}
	return e
}
