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
	"github.com/spf13/cobra"
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
type fileCall struct {
	place, placeFlag, format, file string
	account                        account
}

func (c *fileCall) define(flags *pflag.FlagSet, placeFlag string) {
	c.placeFlag = "--" + placeFlag
	flags.StringVar(&c.place, placeFlag, defaultServer, "`host:port` of a server, or a URL, redis://user@host:port, rediss:// or unix://, or the path of a data directory")
	c.account.define(flags, "password-file", "the server", passwordVariable)
	flagvalue.ChoiceVar(flags, &c.format, "format", formatStream, "`format` of the file: stream, cellserver's own with checksums, or csv, lines of db,key,key_base64,tat_ns,kind,payload_base64", formatStream, formatCSV)
}

func (c *fileCall) take(command string, args []string) error {
	c.file = "-"
	if len(args) == 1 {
		c.file = args[0]
	}
	if err := refuseURL(command, c.file, c.placeFlag); err != nil {
		return err
	}
	if !exists(c.place) {
		c.place = urlOfAddress(c.place)
	}
	switch {
	case isURL(c.place):
		return nil
	case c.account.file != "":
		return usage.Errorf("%s requires the URL of a server; %s names a data directory", c.account.flag, c.placeFlag)
	case strings.Contains(c.place, "@") && !exists(c.place):
		return usage.Errorf("%s: want the URL of a server, such as redis://user@host:port, or the path of a data directory", c.placeFlag)
	}
	return nil
}

// refuseURL refuses a file that is a server's URL, without showing it: it may have a password.
func refuseURL(command, file, placeFlag string) error {
	if !isURL(file) {
		return nil
	}
	return usage.Errorf("%s: FILE is a URL; name the server by %s", command, placeFlag)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isURL(place string) bool { return strings.Contains(place, "://") }

// urlOfAddress returns the URL of a host:port without a user, and anything else as it is.
func urlOfAddress(place string) string {
	if flagvalue.IsAddress(place) && !strings.ContainsAny(place, "/@") {
		return urlOf(place)
	}
	return place
}

// addrFlags defines --addr of a cellserver, as host:port or a URL, and where its password is.
func addrFlags(flags *pflag.FlagSet, to *string, as *account) {
	flagvalue.FuncVar(flags, flagvalue.Func{
		Kind: "host:port", Takes: "host:port, such as 127.0.0.1:6380, or a URL, such as rediss://user@host:port",
		Get: func() string { return *to },
		Set: func(text string) bool {
			*to = text
			return isURL(text) || flagvalue.IsAddress(text)
		},
	}, "addr", "`host:port` of the server, or a URL, redis://user@host:port, rediss:// or unix://")
	as.define(flags, "password-file", "the server", passwordVariable)
}

func urlOf(addr string) string {
	if isURL(addr) {
		return addr
	}
	return "redis://" + addr
}

// openServer parses the URL that a flag names and reads the password; it does not connect yet.
func openServer(ctx context.Context, flag, url string, as *account, stderr io.Writer) (*transfer.Server, error) {
	logging.Disable() // the returned errors say the same as go-redis's log
	url, err := as.addTo(url, flag, stderr)
	if err != nil {
		return nil, err
	}
	s, err := transfer.Open(ctx, url, as.ways())
	if err != nil {
		return nil, usage.Errorf("%s: %w", flag, err)
	}
	return s, nil
}

// openTarget opens a server whose URL may not name a database.
func openTarget(ctx context.Context, url string, as *account, stderr io.Writer) (*transfer.Server, error) {
	s, err := openServer(ctx, "--into", url, as, stderr)
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

// interrupted replaces an error that Ctrl-C has caused.
func interrupted(ctx context.Context, err error, how string) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; " + how)
	}
	return err
}

// failed names the command in an error, unless that is a mistake in the command line.
func failed(ctx context.Context, command string, err error, how string) error {
	var mistake usage.Error
	if err == nil || errors.As(err, &mistake) {
		return err
	}
	return fmt.Errorf("%s: %w", command, interrupted(ctx, err, how))
}

const dumpHelp = `Write the state of every key of a running cellserver, or of a stopped server's data directory, to a file.

Without FILE, or with -, the dump goes to standard output. FILE is replaced only once the dump is complete. A dump of a
running server is not a snapshot: a key that changes meanwhile is dumped in either state.

In CSV, db and tat_ns are numbers; a key that is not plain UTF-8 text is in key_base64 instead of key. For limiters other
than funnels and for values, tat_ns is the expiry of the key, and kind and payload_base64 hold the rest of the state: of a
value, its text. CSV has no checksum: use the other format for backups. A user of the server needs permission to DUMP and
PEXPIRETIME.

Named limits and overrides are not in a dump: keep the file of --limits-file, and of a data directory, which has those by
CL.LIMIT SET and CL.LIMIT OVERRIDE, the files LIMITS and OVERRIDES. docs/DEPLOY.md says how to restore them.`

const dumpExample = `  cellserver dump keys.dump
  cellserver dump --from rediss://operator@limits.example:6390 --password-file password keys.dump
  REDISCLI_AUTH=$(cat password) cellserver dump --from redis://operator@limits.example:6380 keys.dump
  cellserver dump --from /var/lib/cellserver --format csv - | head`

func dumpCommand() *cobra.Command {
	c := &fileCall{}
	cmd := &cobra.Command{
		Use: "dump [flags] [FILE|-]", Short: "write the state of all keys to a file", Long: dumpHelp, Example: dumpExample, Args: usage.AtMostOne("FILE"),
		Annotations: usage.Exits("the dump is complete", "an error; FILE is as before"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.take("dump", args); err != nil {
				return err
			}
			return c.dump(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.define(cmd.Flags(), "from")
	return cmd
}

func (c *fileCall) dump(ctx context.Context, stdout, stderr io.Writer) error {
	if c.file == "-" && c.format == formatStream && isTerminal(stdout) {
		return usage.Errorf("dump: standard output is a terminal; name a FILE, or use --format csv")
	}
	keys, err := c.writeDump(ctx, stdout, stderr)
	if err != nil {
		return failed(ctx, "dump", err, "no dump was written")
	}
	_, err = fmt.Fprintf(stderr, "dump: %s\n", counted(keys, "key"))
	return err
}

func (c *fileCall) writeDump(ctx context.Context, stdout, stderr io.Writer) (keys int64, err error) {
	source, err := c.open(ctx, stderr)
	if err != nil {
		return 0, err
	}
	defer source.close()
	err = writeFile(c.file, stdout, func(out io.Writer) error {
		w, err := newWriter(c.format, out, source.nowNs)
		if err != nil {
			return err
		}
		if err := source.each(ctx, func(e transfer.Entry) error {
			keys++
			return w.Write(e)
		}); err != nil {
			return err
		}
		return w.Close()
	})
	return keys, err
}

func newWriter(format string, out io.Writer, nowNs int64) (transfer.Writer, error) {
	if format == formatCSV {
		return transfer.NewCSVWriter(out)
	}
	return transfer.NewStreamWriter(out, nowNs)
}

type dumpSource struct {
	nowNs int64
	each  func(ctx context.Context, visit func(e transfer.Entry) error) error
	close func()
}

func (c *fileCall) open(ctx context.Context, stderr io.Writer) (dumpSource, error) {
	if !isURL(c.place) {
		keys, err := transfer.ReadDir(ctx, c.place, time.Now().UnixNano())
		if err != nil {
			return dumpSource{}, err
		}
		return dumpSource{keys.NowNs, keys.Each, func() {}}, nil
	}
	s, err := openServer(ctx, c.placeFlag, c.place, &c.account, stderr)
	if err != nil {
		return dumpSource{}, err
	}
	s.IsSource()
	nowNs, err := s.NowNs(ctx)
	if err != nil {
		s.Close()
		return dumpSource{}, err
	}
	line := newKeyProgress(stderr)
	each := func(ctx context.Context, visit func(e transfer.Entry) error) error {
		defer line.clear()
		return s.Dump(ctx, visit, line.updateKeys)
	}
	return dumpSource{nowNs, each, s.Close}, nil
}

const loadHelp = `Load the state of every key of a dump into a running server or a new data directory.

Without FILE, or with -, the dump is read from standard input. FILE is checked before anything is loaded; standard input is
loaded as it arrives, and if it turns out to be damaged, the report says what was loaded before.

States are absolute, such as the time at which a funnel is empty, so they stay valid however much time has passed since the
dump; expired ones are left out. A running server keeps a key whose state is later, so no debt is forgiven, and a dump may be
loaded twice. Of two values, the one that expires later stays, else the higher counter, else the server's. The server may
also be a Redis with redis-cell: it takes values, and funnels with the expiry that the module sets; other limiters are
skipped and counted.

A data directory must be new, empty or without data. A server started in it has the keys.`

const loadExample = `  cellserver load keys.dump
  cellserver load --into redis://operator@limits.example:6380 --password-file password keys.dump
  cellserver load --into /var/lib/cellserver keys.dump
  printf 'key,tat_ns\nalice,%s000000000\n' $(date -d '+1 hour' +%s) | cellserver load --format csv`

func loadCommand() *cobra.Command {
	c := &fileCall{}
	cmd := &cobra.Command{
		Use: "load [flags] [FILE|-]", Short: "load the keys of a dump", Long: loadHelp, Example: loadExample, Args: usage.AtMostOne("FILE"),
		Annotations: usage.Exits("all keys were loaded or skipped", "the server refused keys, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.take("load", args); err != nil {
				return err
			}
			return c.load(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.define(cmd.Flags(), "into")
	return cmd
}

func (c *fileCall) load(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	counts, err := c.loadInto(ctx, stdin, stderr)
	return reportCounts(stdout, "load", "loaded", counts, interrupted(ctx, err, "load it again for the rest"))
}

// reportCounts prints the counts, also those before an error, and returns an error if keys were refused.
func reportCounts(stdout io.Writer, command, done string, counts transfer.Counts, err error) error {
	var mistake usage.Error
	if errors.As(err, &mistake) {
		return err
	}
	if err == nil || counts.Seen > 0 {
		if err := counts.Print(stdout, done); err != nil {
			return err
		}
	}
	switch refused := transfer.Sum(counts.Refused); {
	case err != nil && counts.Seen > 0:
		return fmt.Errorf("%s: ended after %s: %w", command, counted(counts.Seen, "key"), err)
	case err != nil:
		return fmt.Errorf("%s: %w", command, err)
	case refused == 1:
		return fmt.Errorf("%s: 1 key was refused", command)
	case refused > 0:
		return fmt.Errorf("%s: %d keys were refused", command, refused)
	}
	return nil
}

func (c *fileCall) loadInto(ctx context.Context, stdin io.Reader, stderr io.Writer) (transfer.Counts, error) {
	in := stdin
	if c.file != "-" {
		f, err := os.Open(c.file)
		if err != nil {
			return transfer.Counts{}, err
		}
		defer f.Close()
		if err := c.check(f); err != nil {
			return transfer.Counts{}, err
		}
		in = f
	}
	from, err := newReader(c.format, untilDone(ctx, in))
	if err != nil {
		return transfer.Counts{}, err
	}
	if !isURL(c.place) {
		return transfer.LoadDir(c.place, time.Now().UnixNano(), from)
	}
	s, err := openTarget(ctx, c.place, &c.account, stderr)
	if err != nil {
		return transfer.Counts{}, err
	}
	defer s.Close()
	line := newKeyProgress(stderr)
	defer line.clear()
	return transfer.Load(ctx, from, s, func(counts transfer.Counts) { line.updateKeys(counts.Seen, 0) })
}

// check reads a regular file to its end, so that a damaged one is not loaded in part.
func (c *fileCall) check(f *os.File) error {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	from, err := newReader(c.format, f)
	for err == nil {
		_, err = from.Read()
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w; nothing was loaded", c.file, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
