package load

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// NewGet returns a GET of a path over HTTP/1.1, with headers such as "Accept: */*". KeyMark in the path
// becomes the key's digits. A status of 429 counts as limited.
func NewGet(path string, headers ...string) (Command, error) {
	return newWeb("GET "+path, "", headers)
}

// NewPost is NewGet for a POST of a body, in which KeyMark becomes the key's digits.
func NewPost(path, body string, headers ...string) (Command, error) {
	size := len(strings.ReplaceAll(body, KeyMark, strings.Repeat("0", KeyDigits)))
	return newWeb("POST "+path, body, append(headers, "Content-Length: "+strconv.Itoa(size)))
}

func newWeb(line, body string, headers []string) (Command, error) {
	mark := strings.Repeat("#", KeyDigits)
	text := line + " HTTP/1.1\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n" + body
	c, err := RecordedCommand([]byte(strings.ReplaceAll(text, KeyMark, mark)), mark)
	c.web, c.text = true, strings.TrimSpace(line+" "+body)
	return c, err
}

// web speaks HTTP/1.1. Bodies have a length.
type web struct {
	fixed
	skip    int // bytes missing from a body
	limited int // 1 for a reply whose body may be missing
}

func (w *web) feed(b []byte) (n counted, used int, err error) {
	for used < len(b) {
		if w.skip > 0 {
			step := min(w.skip, len(b)-used)
			used, w.skip = used+step, w.skip-step
			if w.skip == 0 {
				w.end(&n)
			}
			continue
		}
		length := bytes.Index(b[used:], []byte("\r\n\r\n"))
		if length < 0 {
			break
		}
		head := b[used : used+length+len("\r\n")]
		used += length + len("\r\n\r\n")
		if err := w.head(head); err != nil {
			return n, used, fmt.Errorf("%w: %s", err, b[used:min(used+200, len(b))])
		}
		if w.skip == 0 {
			w.end(&n)
		}
	}
	return n, used, nil
}

func (w *web) end(n *counted) {
	n.replies++
	n.limited, w.limited = n.limited+w.limited, 0
}

// head reads the lines above a body.
func (w *web) head(head []byte) (err error) {
	const status, length = "HTTP/1.1 ", "\r\nContent-Length: "
	if !bytes.HasPrefix(head, []byte(status)) || len(head) < len(status)+3 {
		return fmt.Errorf("not a reply: %q", head)
	}
	switch string(head[len(status) : len(status)+3]) {
	case "200":
	case "429":
		w.limited = 1
	default:
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		return fmt.Errorf("%w: %s", errErrorReply, line)
	}
	_, value, ok := bytes.Cut(head, []byte(length))
	if !ok {
		return fmt.Errorf("a reply has no Content-Length: %q", head)
	}
	value, _, _ = bytes.Cut(value, []byte("\r\n"))
	if w.skip, err = strconv.Atoi(string(value)); err != nil || w.skip < 0 {
		return fmt.Errorf("not a reply: %q", head)
	}
	return nil
}
