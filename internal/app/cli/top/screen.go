package top

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Sequences of a terminal (ECMA-48, and xterm's modes). Lines are not wrapped, so none that is wider than it
// seems breaks the screen.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
	bold        = "\x1b[1m"
	reverse     = "\x1b[7m"
	normal      = "\x1b[m"
)

// resizeInterval is how often the terminal's size is looked at.
const resizeInterval = 200 * time.Millisecond

// onScreen draws until ctx is done, or q or Ctrl-C is typed.
func (w *watch) onScreen(ctx context.Context, out *os.File) error {
	if typed, ok := takeKeys(w.In); ok {
		defer func() { _ = term.Restore(int(w.In.Fd()), typed.state) }()
		go typed.untilQuit(w.Quit)
	}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(out, leaveScreen) }()
	for {
		if err := w.drawFor(ctx, out, w.Interval); err != nil || ctx.Err() != nil {
			return err
		}
		w.next(ctx)
	}
}

// drawFor draws, and again whenever the terminal's size changes.
func (w *watch) drawFor(ctx context.Context, out *os.File, d time.Duration) error {
	var drawn size
	for end := time.Now().Add(d); ; {
		if now := sizeOf(out); now != drawn {
			drawn = now
			if _, err := out.Write(w.view.screen(now)); err != nil {
				return err
			}
		}
		left := time.Until(end)
		if left <= 0 || !wait(ctx, min(left, resizeInterval)) {
			return nil
		}
	}
}

func sizeOf(out *os.File) size {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return size{80, 24}
	}
	return size{width, height}
}

// screen returns what draws the view over the last one.
func (v *view) screen(s size) []byte {
	var b bytes.Buffer
	b.WriteString(home)
	for i, l := range v.lines(s) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(eraseLine) // before the text: after a full line it would erase the last cell
		switch l.style {
		case heading:
			b.WriteString(bold + l.text + normal)
		case alarm:
			b.WriteString(reverse + l.text + normal)
		default:
			b.WriteString(l.text)
		}
	}
	b.WriteString(eraseBelow)
	return b.Bytes()
}

// typedKeys is a terminal that neither shows what is typed nor waits for the end of a line.
type typedKeys struct {
	in    *os.File
	state *term.State
}

func takeKeys(in *os.File) (*typedKeys, bool) {
	if in == nil || !term.IsTerminal(int(in.Fd())) {
		return nil, false
	}
	state, err := term.MakeRaw(int(in.Fd()))
	return &typedKeys{in, state}, err == nil
}

// untilQuit calls quit for q, Ctrl-C, which sends no signal meanwhile, Ctrl-D and the end of the terminal.
func (k *typedKeys) untilQuit(quit func()) {
	defer quit()
	typed := make([]byte, 64)
	for {
		n, err := k.in.Read(typed)
		if err != nil || bytes.ContainsAny(typed[:n], "qQ\x03\x04") {
			return
		}
	}
}
