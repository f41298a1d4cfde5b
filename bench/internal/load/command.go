package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// KeyMark is the placeholder for the key's twelve digits in a command.
const KeyMark = "{key}"

// CallMark is the placeholder for twelve digits that no other request of a command has.
const CallMark = "{call}"

// KeyDigits is the number of digits that a mark becomes.
const KeyDigits = 12

// Command is one encoded request in which the key's digits can be replaced, and how its reply reports a
// limited call.
type Command struct {
	wire    []byte
	digits  []int // offsets of the key's digits
	calls   []int // offsets of the call's digits
	limited byte  // 0: the command does not limit

	lastCall *atomic.Uint64 // counts on from run to run; nil without the call's digits
	then     *Command       // see Then

	text string // instead of the words of RESP
	web  bool   // over HTTP/1.1
	dial Dial   // the library that calls, or nil
}

// ParseCommand encodes the words of line, split at spaces, as NewCommand does.
func ParseCommand(line string) (Command, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return Command{}, errors.New("load: the command is empty; give one such as \"SET k:{key} 1\"")
	}
	return NewCommand(words...), nil
}

// NewCommand encodes args. The first KeyMark or CallMark in one becomes digits.
func NewCommand(args ...string) Command {
	var c Command
	c.wire = fmt.Appendf(c.wire, "*%d\r\n", len(args))
	for _, arg := range args {
		offsets := &c.digits
		before, after, marked := strings.Cut(arg, KeyMark)
		if !marked {
			offsets = &c.calls
			before, after, marked = strings.Cut(arg, CallMark)
		}
		if !marked {
			c.wire = fmt.Appendf(c.wire, "$%d\r\n%s\r\n", len(arg), arg)
			continue
		}
		c.wire = fmt.Appendf(c.wire, "$%d\r\n%s", len(before)+KeyDigits+len(after), before)
		*offsets = append(*offsets, len(c.wire))
		c.wire = append(c.wire, strings.Repeat("0", KeyDigits)+after+"\r\n"...)
	}
	if c.calls != nil {
		c.lastCall = new(atomic.Uint64)
	}
	return c
}

// Then returns the command such that every second batch of a connection is of another command, for the keys
// and calls of the batch before.
func (c Command) Then(next Command) Command {
	c.then = &next
	return c
}

// Turns returns how many requests there are for each key that is drawn.
func (c Command) Turns() int {
	if c.then != nil {
		return 2
	}
	return 1
}

// RecordedCommand returns a command recorded from a client library. mark, of twelve bytes, is where the key's
// digits are.
func RecordedCommand(wire []byte, mark string) (Command, error) {
	c := Command{wire: bytes.Clone(wire)}
	if len(mark) != KeyDigits {
		return c, fmt.Errorf("load: the mark %q must be %d bytes", mark, KeyDigits)
	}
	for at := 0; ; {
		i := bytes.Index(wire[at:], []byte(mark))
		if i < 0 {
			break
		}
		c.digits = append(c.digits, at+i)
		at += i + KeyDigits
	}
	if len(c.digits) == 0 {
		return c, fmt.Errorf("load: %q is not in the recorded command", mark)
	}
	return c, nil
}

// LimitedBy returns the command such that array replies that begin with the given integer count as limited.
func (c Command) LimitedBy(digit byte) Command {
	c.limited = digit
	return c
}

// repeat returns the command n times in a row.
func (c Command) repeat(n int) []byte { return bytes.Repeat(c.wire, n) }

// put writes the key's digits into one request.
func (c Command) put(request []byte, key uint64) {
	for _, at := range c.digits {
		putDigits(request[at:], key)
	}
}

// putCall writes the call's digits into one request.
func (c Command) putCall(request []byte, call uint64) {
	for _, at := range c.calls {
		putDigits(request[at:], call)
	}
}

func putDigits(digits []byte, of uint64) {
	for i := KeyDigits - 2; i >= 0; i -= 2 {
		pair := of % 100 * 2
		digits[i], digits[i+1] = digitPairs[pair], digitPairs[pair+1]
		of /= 100
	}
}

const digitPairs = "" +
	"00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

// String returns the words of the command with the marks.
func (c Command) String() string {
	if c.text != "" {
		return c.text
	}
	words := c.words()
	if c.then != nil {
		words += ", then " + c.then.words()
	}
	return words
}

func (c Command) words() string {
	type mark struct {
		at   int
		text string
	}
	var marks []mark
	for _, at := range c.digits {
		marks = append(marks, mark{at, KeyMark})
	}
	for _, at := range c.calls {
		marks = append(marks, mark{at, CallMark})
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(b.at, a.at) }) // the last first
	wire := string(c.wire)
	for _, m := range marks {
		wire = wire[:m.at] + m.text + wire[m.at+KeyDigits:]
	}
	var words []string
	for i, line := range strings.Split(wire, "\r\n") {
		if i%2 == 0 && i > 0 && line != "" {
			words = append(words, quoted(line))
		}
	}
	return strings.Join(words, " ")
}

func quoted(word string) string {
	if strings.ContainsAny(word, " \n\t\"") {
		return strconv.Quote(word)
	}
	return word
}
