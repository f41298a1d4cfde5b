package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/zones"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/migrate/replay"
)

const replayHelp = `Run a trace of requests through a limiter, with its times as the clock, and print each row with its answer.

Without FILE, or with -, the trace is standard input. It may be in gzip. Its first line tells its format, unless --format does:

  csv          the first line names the columns, see below
  monitor      what redis-cli monitor prints: calls of CL.THROTTLE,
               CL.PTHROTTLE, CL.REFUND, CL.DEBIT, CL.TOKENBUCKET,
               CL.FIXEDWINDOW, CL.SLIDINGWINDOW and CL.QUOTA, with their own
               limits, or with the one that flags give; other commands, and
               their effects on the keys, are skipped
  combined     an access log of nginx or Apache
  json         an access log with an object per line, as nginx writes
               with escape=json

Each line of an access log requests --quantity units, by default 1, of the limit that flags give. The key is the
client's address, or what --key names, by nginx's variables: remote_addr, remote_user, request, request_method,
request_uri, uri, server_protocol, status, http_referer, http_user_agent, http_x_forwarded_for; in JSON any field. The
time in JSON is --time-field, or msec, time_iso8601, time_local, @timestamp, timestamp or time.

The columns of CSV are, in any order:

  at_ns        the time of the request, Unix nanoseconds; or
  at           the same, RFC 3339 or Unix seconds such as 1700000000.25
  key          the key to limit
  quantity     the units that are requested; 1 without it
  debit        1 charges all units, also beyond the limit, as CL.DEBIT and
               DEBIT do; 0 without it

and those of the limit, which are the arguments of the command of the --algorithm:

  funnel       max_burst, count, period, as in CL.THROTTLE; with
               --milliseconds, as in CL.PTHROTTLE
  tokenbucket  capacity, refill_count, period, as in CL.TOKENBUCKET
  fixedwindow, slidingwindow, approxwindow
               max_count, period, as in CL.FIXEDWINDOW, CL.SLIDINGWINDOW
               and CL.SLIDINGWINDOW ... APPROX
  bucket       capacity, as in CL.BUCKET TAKE; a negative quantity is what
               the caller adds, and a key begins empty
  quota        max_count, every, time_zone, start, epoch, as in CL.QUOTA:
               every is second, minute, hour, day, week, month or year, and
               epoch 0 or 1; without the last three windows are UTC's

Flags set the defaults for missing columns and empty fields. Other columns are copied. The columns limited, limit,
remaining, retry_after and reset_after are appended, and replace columns of these names. Rows must be in order of time;
see --reorder-window.

CL.BTHROTTLE, CL.RESERVE and CL.CONCURRENCY cannot be replayed: they depend on when clients disconnect, on the final cost
of requests and on when these end, which no trace contains. CL.MTHROTTLE, CL.CHECK and CL.MCHECK have several limits: replay
each of them. In MONITOR's lines these commands, and CL.BUCKET, which other clients fill, are skipped and counted.

With --json it prints {"rows": [{"columns": {the trace's, by name}, "limited", "limit", "remaining", "retry_after_ms",
"reset_after_ms"}, ...], "skipped_rows", "skipped_calls", "complete"}, where complete is false after an error, and a column that is
not UTF-8 has _base64 after its name. With --summary as well, it prints {"rows", "allowed", "limited", "limited_share", "first",
"last", "time_span_ms", "skipped_rows", "skipped_calls", "most_limited": [{"key", "limited", "at_most_too_high"}, ...]}.`

const replayExample = `  $ printf 'at,key\n1700000000,alice\n1700000000.5,alice\n' |
      cellserver replay --max-burst 0 --count 1 --period 1
  at,key,limited,limit,remaining,retry_after,reset_after
  1700000000,alice,0,1,0,-1,1
  1700000000.5,alice,1,1,0,1,1`

type replayCall struct {
	file        string // "-" for standard input
	summary     bool
	json        bool
	top         int
	wholeBursts bool // --burst-is-capacity
	keys        string
	options     replay.Options
}

func replayCommand() *cobra.Command {
	c := &replayCall{file: "-"}
	cmd := &cobra.Command{
		Use: "replay [flags] [FILE|-]", Short: "run a trace of requests through a limiter", Long: replayHelp, Example: replayExample,
		Args: usage.AtMostOne("FILE"), Annotations: usage.Exits("all rows have answers, or were skipped", "an error, such as a bad row, or a --summary of no row"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.file = args[0]
			}
			if err := c.check(); err != nil {
				return usage.Errorf("%w", err)
			}
			return c.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flagvalue.ChoiceVar(flags, (*string)(&c.options.Format), "format", string(replay.AnyFormat), "`format` of the trace: "+flagvalue.Or(replay.Formats()), replay.Formats()...)
	flags.StringVar(&c.keys, "key", "", "`fields` of an access log that make the key, separated by spaces (default remote_addr)")
	flags.StringVar(&c.options.TimeField, "time-field", "", "`field` with the time in a JSON access log (default the first that exists)")
	flagvalue.ChoiceVar(flags, (*string)(&c.options.Algorithm), "algorithm", string(replay.Funnel), "`limiter`: "+flagvalue.Or(replay.Algorithms()), replay.Algorithms()...)
	limitFlags(flags, &c.options)
	quotaFlags(flags, &c.options)
	flagvalue.BoolVar(flags, &c.wholeBursts, "burst-is-capacity", "read max_burst as a funnel's whole capacity instead of the burst beyond the first unit")
	flagvalue.BoolVar(flags, &c.options.CountDenied, "count-denied", "count denied requests in windows, as COUNTDENIED does")
	flagvalue.BoolVar(flags, &c.options.Debit, "debit", "charge all units, also beyond the limit, as CL.DEBIT does")
	flagvalue.BoolVar(flags, &c.options.Milliseconds, "milliseconds", "use milliseconds for periods, retry_after and reset_after instead of seconds")
	flagvalue.DurationVar(flags, &c.options.ReorderWindow, "reorder-window", 0, 0, math.MaxInt64, "sort rows that are older than the newest by up to this `time`")
	flagvalue.BoolVar(flags, &c.options.SkipBad, "skip-bad", "count bad rows instead of stopping at the first")
	flagvalue.BoolVar(flags, &c.summary, "summary", "print totals and the most limited keys instead of the rows")
	jsonFlag(flags, &c.json)
	flagvalue.NumberVar(flags, &c.top, "top", 10, 0, math.MaxInt, "`number` of the most limited keys to print with --summary")
	return cmd
}

// check validates the flags and sets the options derived from them.
func (c *replayCall) check() error {
	o := &c.options
	o.KeyFields, o.Reading = strings.Fields(c.keys), reading(c.wholeBursts)
	switch {
	case o.CountDenied && !o.Algorithm.CountsDenied():
		return fmt.Errorf("replay: --count-denied is for windows, and the --algorithm is %s", o.Algorithm)
	case o.Debit && !o.Algorithm.Debits():
		return fmt.Errorf("replay: --debit is for limiters with debits, and the --algorithm is %s", o.Algorithm)
	case o.Debit && o.CountDenied:
		return errors.New("replay: --debit and --count-denied exclude each other: a debit is never denied")
	case o.Algorithm != replay.Quota && (o.Every != "" || o.TimeZone != "" || o.Start != "" || o.Epoch):
		return fmt.Errorf("replay: --every, --time-zone, --start and --epoch are for quotas, and the --algorithm is %s", o.Algorithm)
	}
	return nil
}

// quotaFlags define defaults for the columns of a quota's windows.
func quotaFlags(flags *pflag.FlagSet, o *replay.Options) {
	flagvalue.ChoiceVar(flags, &o.Every, "every", "", "default `window` of a quota: "+flagvalue.Or(everies()), everies()...)
	word := func(to *string, takes string, check func(text string) bool) flagvalue.Func {
		return flagvalue.Func{Kind: "string", Takes: takes, Get: func() string { return *to }, Set: func(text string) bool {
			*to = text
			return check(text)
		}}
	}
	zone := word(&o.TimeZone, "an IANA name, such as Europe/Berlin", isZone)
	flagvalue.FuncVar(flags, zone, "time-zone", "default `zone` of a quota, such as Europe/Berlin (default UTC)")
	start := word(&o.Start, "HH:MM of a day, 1 to 7 of a week, 1 to 31 of a month or MM-DD of a year, such as 06:00", isStart)
	flagvalue.FuncVar(flags, start, "start", "default `start` of a quota's windows, such as 06:00 of a day, 15 of a month or 04-01 of a year")
	flagvalue.BoolVar(flags, &o.Epoch, "epoch", "begin a quota's windows at multiples of their length since 1970")
}

func isZone(name string) bool {
	_, err := calendar.NewSet(&calendar.Wall{}, zones.Load).Of(calendar.Spec{Every: calendar.Day, Zone: name})
	return err == nil
}

// isStart reports whether a text is the start of any window; none is the natural one.
func isStart(text string) bool {
	for every := range calendar.Everies {
		if _, err := calendar.ParseStart(every, []byte(text)); err == nil {
			return true
		}
	}
	return text == ""
}

func everies() []string {
	names := make([]string, 0, calendar.Everies)
	for every := range calendar.Everies {
		names = append(names, every.String())
	}
	return names
}

// limitFlags define defaults for the columns of limits.
func limitFlags(flags *pflag.FlagSet, o *replay.Options) {
	for _, f := range []struct {
		value       **int64
		name, usage string
	}{
		{&o.MaxBurst, "max-burst", "default max_burst"},
		{&o.Count, "count", "default count"},
		{&o.Capacity, "capacity", "default capacity"},
		{&o.RefillCount, "refill-count", "default refill_count"},
		{&o.MaxCount, "max-count", "default max_count"},
		{&o.Period, "period", "default period in seconds"},
		{&o.Quantity, "quantity", "default quantity (default 1)"},
	} {
		flagvalue.FuncVar(flags, optionalInteger(f.value), f.name, f.usage)
	}
}

// optionalInteger takes a decimal 64-bit integer; nil if unset.
func optionalInteger(to **int64) flagvalue.Func {
	return flagvalue.Func{
		Kind: "int", Takes: "a decimal integer of up to 64 bits, such as 10",
		Get: func() string {
			if *to == nil {
				return ""
			}
			return strconv.FormatInt(**to, 10)
		},
		Set: func(text string) bool {
			n, err := strconv.ParseInt(text, 10, 64)
			if err == nil {
				*to = &n
			}
			return err == nil
		},
	}
}

func (c *replayCall) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := stdin
	c.options.Name = "stdin"
	if c.file != "-" {
		f, err := os.Open(c.file)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		defer func() { _ = f.Close() }()
		in, c.options.Name = f, c.file
	}
	line := &progressLine{out: stderr, sizeBytes: fileSize(in), start: time.Now()}
	// Rows on a terminal show progress themselves, and would mix with the progress line.
	if isTerminal(stderr) && (c.summary || !isTerminal(stdout)) {
		c.options.Progress = line.update
	}
	trace := untilDone(ctx, in)
	var skipped replay.Skipped
	var summary *replay.Summary
	var err error
	if c.summary {
		summary, err = replay.Summarize(ctx, trace, c.options)
		skipped = summary.Skipped
	} else if c.json {
		skipped, err = replay.RowsInJSON(ctx, trace, stdout, c.options)
	} else {
		skipped, err = replay.Rows(ctx, trace, stdout, c.options)
	}
	line.clear()
	reportSkipped(stderr, skipped)
	if replay.IsBadRow(err) {
		return fmt.Errorf("%w; --skip-bad skips such rows", err)
	}
	if err != nil || summary == nil {
		return err // a part's totals could be mistaken for the whole's
	}
	if why := summary.Nothing(); why != "" {
		return errors.New("replay: nothing was replayed: " + why)
	}
	if c.json {
		return printJSON(stdout, summaryDocumentOf(summary, c.top))
	}
	return summary.Print(stdout, c.top)
}

func reportSkipped(stderr io.Writer, skipped replay.Skipped) {
	if skipped.Rows > 0 {
		_, _ = fmt.Fprintf(stderr, "replay: skipped %s, the first: %v\n", counted(skipped.Rows, "bad row"), skipped.First)
	}
	if skipped.Calls > 0 {
		_, _ = fmt.Fprintf(stderr, "replay: skipped %s of limiters that no trace can decide, such as CL.BTHROTTLE\n", counted(skipped.Calls, "call"))
	}
}

// fileSize returns 0 for an unknown size.
func fileSize(in io.Reader) int64 {
	f, ok := in.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

type summaryDocument struct {
	Rows         int64        `json:"rows"`
	Allowed      int64        `json:"allowed"`
	Limited      int64        `json:"limited"`
	LimitedShare float64      `json:"limited_share"`
	First        *time.Time   `json:"first"` // nil without rows, like Last
	Last         *time.Time   `json:"last"`
	TimeSpanMs   int64        `json:"time_span_ms"`
	SkippedRows  int64        `json:"skipped_rows"`
	SkippedCalls int64        `json:"skipped_calls"`
	MostLimited  []limitedKey `json:"most_limited"`
}

type limitedKey struct {
	documentKey
	Limited       float64 `json:"limited"`
	AtMostTooHigh float64 `json:"at_most_too_high"`
}

func summaryDocumentOf(s *replay.Summary, top int) summaryDocument {
	d := summaryDocument{
		Rows: s.Allowed + s.Limited, Allowed: s.Allowed, Limited: s.Limited, SkippedRows: s.Skipped.Rows, SkippedCalls: s.Skipped.Calls,
		MostLimited: []limitedKey{},
	}
	if d.Rows > 0 {
		first, last := time.Unix(0, s.FirstNs).UTC(), time.Unix(0, s.LastNs).UTC()
		d.LimitedShare, d.First, d.Last, d.TimeSpanMs = s.LimitedShare(), &first, &last, last.Sub(first).Milliseconds()
	}
	for _, c := range s.MostLimited(top) {
		d.MostLimited = append(d.MostLimited, limitedKey{documentKeyOf(c.Key), c.Count, c.Overcount})
	}
	return d
}
