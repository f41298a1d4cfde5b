package observe

import (
	"strconv"
	"strings"

	"cellserver/internal/catalog"
	"cellserver/internal/resp"
)

// ErrorReply is a reply that is an error, to what call it is, and whose.
type ErrorReply struct {
	Text    string
	Command *catalog.Command // nil for none of that name
	Args    [][]byte         // none if they are no longer known, or the input is not a command
	By      Caller
}

// LastError is what others may see of an error reply: cut, printable, and without passwords.
type LastError struct {
	Text         string
	Command      string // the call
	Client, Name string // the client's address, and what it calls itself
}

// So much is kept of the last error.
const (
	maxErrorBytes       = 240 // of the text
	maxErrorArgs        = 8
	maxErrorArgBytes    = 40
	maxErrorClientBytes = 64 // of the address, and of the name
)

// shown is a reply without what nobody else may see: as MONITOR would have the call, and less where MONITOR has nothing. Of a
// command that does not exist it has the name alone, for that may be a mistyped AUTH, and of one that administers the server.
func (r ErrorReply) shown() ErrorReply {
	switch {
	case r.Command == nil:
		r.Args = r.Args[:min(len(r.Args), 1)]
		r.Text, _, _ = strings.Cut(r.Text, ", with args beginning with")
	case r.Command.Flags&catalog.FlagAdmin != 0:
		r.Args, r.Text = nil, withoutQuoted(r.Text)
	case len(r.Args) > 0:
		redacted := Redacted(r.Command, r.Args)
		if &redacted[0] != &r.Args[0] { // a copy, because something is hidden
			r.Args, r.Text = redacted, withoutQuoted(r.Text)
		}
	}
	return r
}

// withoutQuoted hides what an error repeats of a call, and all behind it.
func withoutQuoted(text string) string {
	if at := strings.IndexAny(text, "'\""); at >= 0 {
		return text[:at] + "(redacted)"
	}
	return text
}

// lastError is the last error reply, in buffers that are used again: a flood of errors must stay cheap.
type lastError struct {
	command            *catalog.Command
	text, client, name []byte
	args               [maxErrorArgs][]byte
	argBytes           [maxErrorArgs]int // as long as they were
	n                  int               // arguments, of which the first are kept
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
	printable := func(b []byte, maxBytes int) string { return resp.PrintableN(b, 4*maxBytes) } // each byte may take four
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
