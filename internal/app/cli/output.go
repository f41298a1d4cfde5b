package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"cellserver/internal/base/flagvalue"
)

func jsonFlag(flags *pflag.FlagSet, to *bool) {
	flagvalue.BoolVar(flags, to, "json", "print one JSON document")
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print the document: %w", err)
	}
	return nil
}

// documentKey is a key within an object: as key, or as key_base64 if it is not UTF-8.
type documentKey struct {
	Text   *string `json:"key,omitempty"`
	Base64 []byte  `json:"key_base64,omitempty"`
}

func documentKeyOf(name string) documentKey {
	if utf8.ValidString(name) {
		return documentKey{Text: &name}
	}
	return documentKey{Base64: []byte(name)}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

const progressInterval = 200 * time.Millisecond

const progressEvery = 5 * time.Second

// progressLine is a line on a terminal, overwritten as the work proceeds.
type progressLine struct {
	out          io.Writer
	isLog        bool  // gets a new line each time
	sizeBytes    int64 // of the whole trace; 0 if unknown
	start, shown time.Time
}

func newKeyProgress(stderr io.Writer) *progressLine {
	now := time.Now()
	return &progressLine{out: stderr, isLog: !isTerminal(stderr), start: now, shown: now}
}

// updateKeys shows keys done; of is the estimated total, or 0.
func (l *progressLine) updateKeys(keys, of int64) {
	now := time.Now()
	if !l.isDue(now) {
		return
	}
	text := fmt.Sprintf("%s, %.0f keys/s", counted(keys, "key"), float64(keys)/now.Sub(l.start).Seconds())
	if of > 0 {
		text += fmt.Sprintf(", %d %% of about %d", min(100*keys/of, 100), of)
	}
	l.show(text)
}

func (l *progressLine) update(rows, bytes int64) {
	now := time.Now()
	if !l.isDue(now) {
		return
	}
	rowsPerSec := float64(rows) / max(now.Sub(l.start).Seconds(), 1e-9)
	text := fmt.Sprintf("%d rows, %.0f rows/s, %d MB", rows, rowsPerSec, bytes/1_000_000)
	if l.sizeBytes > 0 {
		text += fmt.Sprintf(", %d %%", min(100*bytes/l.sizeBytes, 100))
	}
	l.show(text)
}

// isDue reports whether the interval has passed, and restarts it if so.
func (l *progressLine) isDue(now time.Time) bool {
	interval := progressInterval
	if l.isLog {
		interval = progressEvery
	}
	if now.Sub(l.shown) < interval {
		return false
	}
	l.shown = now
	return true
}

func (l *progressLine) show(text string) {
	if l.isLog {
		_, _ = fmt.Fprintln(l.out, text)
		return
	}
	_, _ = io.WriteString(l.out, "\r"+text+eraseToEnd)
}

func (l *progressLine) clear() {
	if !l.isLog && !l.shown.IsZero() {
		_, _ = io.WriteString(l.out, "\r"+eraseToEnd)
	}
}

// eraseToEnd erases a terminal's line from the cursor on (ECMA-48, EL).
const eraseToEnd = "\x1b[K"

func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

// untilDone returns a reader that fails once ctx is done, even while a terminal or pipe is silent.
func untilDone(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	return r
}
