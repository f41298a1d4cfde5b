// Package top shows the hot keys and the named limits of a running server, on a terminal's screen that is
// refreshed, or as text. A call has one goroutine, and one more that reads the terminal's keys.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Options say what to show, and where.
type Options struct {
	Server    Server
	Interval  time.Duration
	Rounds    int  // after which Run returns; 0 for none
	ByLimited bool // rank keys by their limited calls

	In       *os.File // nil for no terminal
	Out, Err io.Writer

	Quit func() // ends ctx, and the server's connections with it
}

// answerTimeout bounds a round's wait for a server that is gone.
const answerTimeout = 5 * time.Second

// Run shows the server until ctx is done, which is no error. Nor is it if the server goes away later.
func Run(ctx context.Context, o Options) error {
	w := &watch{Options: o, view: view{server: o.Server.Name(), byLimited: o.ByLimited}}
	var err error
	if w.view.now, err = w.read(ctx); err != nil {
		return unlessDone(ctx, err)
	}
	if screen, ok := o.Out.(*os.File); ok && o.Rounds == 0 && term.IsTerminal(int(screen.Fd())) && os.Getenv("TERM") != "dumb" {
		err = w.onScreen(ctx, screen)
	} else {
		err = w.asText(ctx)
	}
	return unlessDone(ctx, err)
}

// unlessDone returns an error unless ctx is done, which may have caused it.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}

type watch struct {
	Options
	view view
	lost time.Time // since when the server does not answer; zero while it does
}

func (w *watch) read(ctx context.Context) (*sample, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return read(ctx, w.Server, w.ByLimited)
}

// next takes a sample into the view, or says there that the server is away.
func (w *watch) next(ctx context.Context) {
	now, err := w.read(ctx)
	if err != nil {
		if w.lost.IsZero() {
			w.lost = time.Now()
		}
		w.view.isAway = true
		w.view.note = fmt.Sprintf("No answer since %s, trying again: %v", w.lost.Format(time.TimeOnly), cause(err))
		return
	}
	hasRestarted := now.runID != w.view.now.runID
	if !w.lost.IsZero() {
		w.view.note = fmt.Sprintf("Connected again at %s, after %s", time.Now().Format(time.TimeOnly), time.Since(w.lost).Round(time.Second))
		if hasRestarted {
			w.view.note += "; the server has restarted"
		}
	}
	w.lost, w.view.isAway = time.Time{}, false
	w.view.before, w.view.now = w.view.now, now
	if hasRestarted {
		w.view.before = nil
	}
}

// cause shortens an error to fit a line.
func cause(err error) error {
	if call := (*os.SyscallError)(nil); errors.As(err, &call) {
		return call.Err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it takes longer than %s", answerTimeout)
	}
	return err
}

// wait returns false if ctx is done first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// asText prints a block a round, each of an interval.
func (w *watch) asText(ctx context.Context) error {
	rounds := w.Rounds
	if rounds == 0 {
		rounds = math.MaxInt
	}
	for printed := 0; printed < rounds && wait(ctx, w.Interval); {
		wasAway := w.view.isAway
		w.next(ctx)
		if w.view.isAway != wasAway && ctx.Err() == nil {
			_, _ = fmt.Fprintf(w.Err, "cellserver: top: %s\n", w.view.note)
		}
		if w.view.isAway {
			continue
		}
		if err := w.print(printed > 0); err != nil {
			return err
		}
		printed++
	}
	return nil
}

func (w *watch) print(again bool) error {
	var b strings.Builder
	if again {
		b.WriteByte('\n')
	}
	for _, l := range w.view.lines(size{}) {
		b.WriteString(l.text + "\n")
	}
	_, err := io.WriteString(w.Out, b.String())
	return err
}
