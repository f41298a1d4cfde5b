package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// replies counts the replies in a stream of RESP2, and stops at the first error among them.
type replies struct {
	limited byte // see Command.LimitedBy
	open    int  // items missing from the current reply
	skip    int  // bytes missing from a bulk string, including its CRLF
	first   bool // the next item is the first of a reply that is an array
}

// counted is the number of replies in a piece of the stream.
type counted struct{ replies, limited int }

// errErrorReply is wrapped by the errors for error replies.
var errErrorReply = errors.New("the server answered with an error")

// feed counts the replies that end in b. Unused bytes are the beginning of a line, to be fed again with the
// rest.
func (r *replies) feed(b []byte) (n counted, used int, err error) {
	for used < len(b) {
		if r.skip > 0 {
			step := min(r.skip, len(b)-used)
			used, r.skip = used+step, r.skip-step
			if r.skip == 0 && r.open == 0 {
				n.replies++
			}
			continue
		}
		length := bytes.IndexByte(b[used:], '\n')
		if length < 0 {
			break
		}
		line := b[used : used+length] // with its \r
		used += length + 1
		if r.open == 0 {
			r.open, r.first = 1, false
		} else if r.first {
			r.first = false
			if len(line) == 3 && line[0] == ':' && line[1] == r.limited {
				n.limited++
			}
		}
		r.open--
		if err := r.item(line); err != nil {
			return n, used, err
		}
		if r.open == 0 && r.skip == 0 {
			n.replies++
		}
	}
	return n, used, nil
}

// item processes the line that begins an item, which is the whole item except for arrays and bulk strings.
func (r *replies) item(line []byte) error {
	if len(line) < 2 {
		return fmt.Errorf("not a reply: %q", line)
	}
	switch line[0] {
	case ':', '+':
		return nil
	case '-':
		return fmt.Errorf("%w: %s", errErrorReply, line[1:len(line)-1])
	case '*', '$':
		n, err := strconv.Atoi(string(line[1 : len(line)-1]))
		if err != nil || n < -1 {
			return fmt.Errorf("not a reply: %q", line)
		}
		if n < 0 {
			return nil
		}
		if line[0] == '$' {
			r.skip = n + len("\r\n")
			return nil
		}
		r.first = r.open == 0
		r.open += n
		return nil
	}
	return fmt.Errorf("not a reply: %q", line)
}
