package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// KeyMark is the placeholder for the key's twelve digits in a command.
const KeyMark = "{key}"

// KeyDigits is their number.
const KeyDigits = 12

// Command is one encoded request in which the key's digits can be replaced, and how its reply reports a
// limited call.
type Command struct {
	wire    []byte
	digits  []int // offsets of the key's digits
	limited byte  // 0: the command does not limit

	text string // instead of the words of RESP
	web  bool   // over HTTP/1.1
	dial Dial   // the library that calls, or nil
}

// ParseCommand encodes the words of line, split at spaces. KeyMark in a word becomes the key's digits.
func ParseCommand(line string) (Command, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return Command{}, errors.New("load: the command is empty; give one such as \"SET k:{key} 1\"")
	}
	return NewCommand(words...), nil
}

// NewCommand encodes args. KeyMark in one becomes the key's digits.
func NewCommand(args ...string) Command {
	zeros := strings.Repeat("0", KeyDigits)
	var c Command
	c.wire = fmt.Appendf(c.wire, "*%d\r\n", len(args))
	for _, arg := range args {
		before, after, marked := strings.Cut(arg, KeyMark)
		if !marked {
			c.wire = fmt.Appendf(c.wire, "$%d\r\n%s\r\n", len(arg), arg)
			continue
		}
		c.wire = fmt.Appendf(c.wire, "$%d\r\n%s", len(before)+KeyDigits+len(after), before)
		c.digits = append(c.digits, len(c.wire))
		c.wire = append(c.wire, zeros+after+"\r\n"...)
	}
	return c
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
		digits := request[at : at+KeyDigits]
		for i := KeyDigits - 2; i >= 0; i -= 2 {
			pair := key % 100 * 2
			digits[i], digits[i+1] = digitPairs[pair], digitPairs[pair+1]
			key /= 100
		}
	}
}

const digitPairs = "" +
	"00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

// String returns the words of the command with KeyMark for the key.
func (c Command) String() string {
	if c.text != "" {
		return c.text
	}
	wire := string(c.wire)
	for i := len(c.digits) - 1; i >= 0; i-- {
		at := c.digits[i]
		wire = wire[:at] + KeyMark + wire[at+KeyDigits:]
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
