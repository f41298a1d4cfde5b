package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/migrate/transfer"
)

const defaultServer = "redis://127.0.0.1:6380"

const (
	formatStream = "stream"
	formatCSV    = "csv"
)

// fileCall is the command line of dump and load: a server or directory, named by a flag, and a file.
type fileCall struct{ place, format, file string }

func (c *fileCall) define(flags *pflag.FlagSet, placeFlag string) {
	flags.StringVar(&c.place, placeFlag, defaultServer, "`URL` of a server, redis://user:password@host:port, rediss:// or unix://, or the path of a data directory")
	flagvalue.ChoiceVar(flags, &c.format, "format", formatStream, "`format` of the file: stream, cellserver's own with checksums, or csv, lines of db,key,key_base64,tat_ns,kind,payload_base64", formatStream, formatCSV)
}

func (c *fileCall) take(args []string) {
	c.file = "-"
	if len(args) == 1 {
		c.file = args[0]
	}
}

func isURL(place string) bool { return strings.Contains(place, "://") }

// addrFlag defines --addr of a cellserver, as host:port or a URL.
func addrFlag(flags *pflag.FlagSet, to *string) {
	flagvalue.FuncVar(flags, flagvalue.Func{
		Kind: "host:port", Takes: "host:port, such as 127.0.0.1:6380, or a URL, such as rediss://user:password@host:port",
		Get: func() string { return *to },
		Set: func(text string) bool {
			*to = text
			return isURL(text) || flagvalue.IsAddress(text)
		},
	}, "addr", "`host:port` of the server, or a URL, redis://user:password@host:port, rediss:// or unix://; CELLSERVER_ADDR hides its password from the process list")
}

// urlOf returns the URL of an --addr.
func urlOf(addr string) string {
	if isURL(addr) {
		return addr
	}
	return "redis://" + addr
}

// openServer parses the URL; it does not connect yet.
func openServer(ctx context.Context, flag, url string) (*transfer.Server, error) {
	logging.Disable() // the returned errors say the same as go-redis's log
	s, err := transfer.Open(ctx, url)
	if err != nil {
		return nil, usage.Errorf("%s: %w", flag, err)
	}
	return s, nil
}

// openTarget opens a server whose URL may not name a database.
func openTarget(ctx context.Context, url string) (*transfer.Server, error) {
	s, err := openServer(ctx, "--into", url)
	if err != nil {
		return nil, err
	}
	if _, ok := s.NamesDB(); ok {
		return nil, usage.Errorf("--into: leave out the database; keys stay in their database")
	}
	return s, nil
}

func newReader(format string, in io.Reader) (transfer.Reader, error) {
	if format == formatCSV {
		return transfer.NewCSVReader(in)
	}
	return transfer.NewStreamReader(in)
}

// writeFile replaces a file once it is written completely; "-" is standard output.
func writeFile(path string, stdout io.Writer, write func(w io.Writer) error) (err error) {
	if path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; use - for standard output", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// progressEvery is the interval of progress lines in a log.
const progressEvery = 5 * time.Second

// keyProgress shows the number of keys done: as an overwritten line on a terminal, elsewhere as lines.
type keyProgress struct {
	line     progressLine
	terminal bool
	start    time.Time
}

func newKeyProgress(stderr io.Writer) *keyProgress {
	now := time.Now()
	return &keyProgress{progressLine{out: stderr, shown: now}, isTerminal(stderr), now}
}

// update shows keys done; of is the estimated total, or 0.
func (p *keyProgress) update(keys, of int64) {
	interval := progressEvery
	if p.terminal {
		interval = progressInterval
	}
	now := time.Now()
	if now.Sub(p.line.shown) < interval {
		return
	}
	p.line.shown = now
	text := fmt.Sprintf("%d keys, %.0f keys/s", keys, float64(keys)/now.Sub(p.start).Seconds())
	if of > 0 {
		text += fmt.Sprintf(", %d %% of about %d", min(100*keys/of, 100), of)
	}
	if p.terminal {
		p.line.show(text)
	} else {
		_, _ = fmt.Fprintln(p.line.out, text)
	}
}

func (p *keyProgress) clear() {
	if p.terminal {
		p.line.clear()
	}
}

// interrupted replaces an error that Ctrl-C has caused.
func interrupted(ctx context.Context, err error, how string) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; " + how)
	}
	return err
}
