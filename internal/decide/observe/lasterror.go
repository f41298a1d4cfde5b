package observe

import (
	"strconv"
	"strings"

	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
)

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

// public returns the error as text.
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
