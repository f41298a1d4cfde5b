package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// replies counts the replies in a stream of RESP2, and stops at the first error among them.
type replies struct {
	denied byte // see Command.DeniedBy
	open   int  // items that the reply begun still lacks
	skip   int  // bytes of a bulk string, with its end of line, that are still to come
	first  bool // the next item is the first of a reply that is an array
}

// counted is what a piece of the stream held.
type counted struct{ replies, denied int }

// errErrorReply is wrapped by the error that an error reply becomes.
var errErrorReply = errors.New("the server answered with an error")

// feed counts the replies that end in b. What it did not use is the beginning of a line, to be fed again with the rest.
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
			if len(line) == 3 && line[0] == ':' && line[1] == r.denied {
				n.denied++
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

// item takes the line that begins an item, and is all of it unless it is an array or a bulk string.
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
