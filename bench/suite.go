package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"cellserver/bench/internal/inprocess"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
	"cellserver/bench/internal/scenario"
)

// suiteOptions holds the values of the flags of bench run.
type suiteOptions struct {
	quick   bool
	only    []string
	rounds  int
	window  time.Duration
	threads int
	slack   float64
	source  peer.Source
	output  string
	readme  string
}

func (o *suiteOptions) parse(args []string, stdout io.Writer) error {
	fs := newFlags("run", "Starts the servers, measures them interleaved and judges the goals.", stdout)
	fs.BoolVar(&o.quick, "quick", false, "compare cellserver with SET in under a minute; fail if a goal is missed")
	fs.StringSliceVar(&o.only, "only", nil, "`scenarios` to run: "+scenarioNames())
	fs.IntVar(&o.rounds, "rounds", 0, "rounds that count, after a warm-up round (default 5, 3 with --quick)")
	fs.DurationVar(&o.window, "window", 0, "how long one measurement takes (default 1s, 800ms with --quick)")
	fs.IntVar(&o.threads, "threads", 1, "threads of the load generator")
	fs.Float64Var(&o.slack, "slack", -1, "share of a goal's bound by which it may be missed (default 0, 0.1 with --quick)")
	fs.StringVar(&o.source.Dir, "source", "..", "`directory` of cellserver's source")
	fs.StringVar(&o.source.Binary, "cellserver", "", "`file` of a cellserver to measure instead of building one")
	fs.StringVar(&o.source.Data, "data", "", "`directory` of the file system to which servers write (default the system's temporary one)")
	fs.StringVarP(&o.output, "output", "o", "", "`file` for the results as JSON; charts go into its directory")
	fs.StringVar(&o.readme, "readme", "", "`file` whose tables are updated (requires -o)")
	if err := parse(fs, args); err != nil {
		return err
	}
	o.source.RedisCell, o.source.Throttlecrab = os.Getenv("REDIS_CELL_SO"), os.Getenv("THROTTLECRAB_BIN")
	o.source.RateLimit = os.Getenv("RATELIMIT_BIN")
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	o.source.Control = []string{self, "control"}
	return o.complete()
}

// complete sets defaults and validates the options.
func (o *suiteOptions) complete() error {
	rounds, window, slack := 5, time.Second, 0.0
	if o.quick {
		rounds, window, slack = 3, 800*time.Millisecond, 0.1 // a short run, possibly on a shared machine
		if len(o.only) > 0 {
			return usageError{errors.New("--quick and --only are mutually exclusive")}
		}
		o.only = []string{scenario.Quick}
	}
	if o.rounds == 0 {
		o.rounds = rounds
	}
	if o.window == 0 {
		o.window = window
	}
	if o.slack < 0 {
		o.slack = slack
	}
	switch {
	case o.rounds < 1 || o.window <= 0:
		return usageError{errors.New("--rounds and --window must be above 0")}
	case o.readme != "" && o.output == "":
		return usageError{errors.New("--readme requires -o, because the charts are stored next to the results")}
	}
	return nil
}

func scenarioNames() string {
	var names []string
	for _, s := range scenario.All() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// errMissed makes a quick run exit with the code of a failure.
var errMissed = errors.New("a goal was missed")

func runSuite(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := &suiteOptions{}
	if err := o.parse(args, stdout); err != nil {
		return err
	}
	scenarios, err := scenario.Select(o.only)
	if err != nil {
		return usageError{err}
	}
	results, failed := o.measure(ctx, scenarios, stderr)
	if err := results.Text(stdout); err != nil { // results from before a failure are shown, too
		return err
	}
	if failed != nil {
		return failed
	}
	if o.output != "" {
		if len(o.only) > 0 { // else nothing would be left of the others
			earlier, err := report.Read(o.output)
			switch {
			case err == nil:
				results = results.Over(earlier)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		if err := publish(results, o.output, o.readme); err != nil {
			return err
		}
	}
	if o.quick {
		return missed(results.Goals)
	}
	return nil
}

// missed returns an error if goals were missed.
func missed(goals []report.Goal) error {
	var all []string
	for _, g := range goals {
		if g.Outcome() == report.Missed {
			all = append(all, fmt.Sprintf("%s is %s, wanted %s", g.Text, g.Got, g.Wanted()))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s (repeat the run if other processes used the machine)", errMissed, strings.Join(all, "; "))
}

// measure returns the results so far even if it fails.
func (o *suiteOptions) measure(ctx context.Context, scenarios []scenario.Scenario, stderr io.Writer) (*report.Results, error) {
	progress := newProgress(stderr)
	defer progress.end()
	results := &report.Results{
		Started: time.Now(), Machine: report.ThisMachine(), Rounds: o.rounds, WindowSeconds: o.window.Seconds(),
	}
	progress.step("building")
	kit, err := peer.Prepare(ctx, o.source)
	if err != nil {
		return results, err
	}
	defer kit.Close()
	results.Versions = kit.Versions
	suite := &scenario.Suite{
		Kit: kit, Rounds: o.rounds, Window: o.window, Threads: o.threads, Slack: o.slack,
		Limiter: startInProcess, Progress: progress.step, Results: results,
	}
	err = suite.Run(ctx, scenarios)
	results.Seconds = time.Since(results.Started).Seconds()
	return results, err
}

// publish writes the results, the charts, and the tables of a README.
func publish(results *report.Results, output, readme string) error {
	if err := results.Write(output); err != nil {
		return err
	}
	if err := results.Charts(filepath.Dir(output)); err != nil {
		return err
	}
	if readme == "" {
		return nil
	}
	return results.UpdateReadme(readme, filepath.Dir(output))
}

func runReport(_ context.Context, args []string, stdout, _ io.Writer) error {
	var from, readme string
	fs := newFlags("report", "Writes the tables of a measurement, and its charts into the same directory.", stdout)
	fs.StringVar(&from, "from", "results/latest.json", "`file` that bench run -o wrote")
	fs.StringVar(&readme, "readme", "", "`file` whose tables are updated")
	if err := parse(fs, args); err != nil {
		return err
	}
	results, err := report.Read(from)
	if err != nil {
		return err
	}
	if err := results.Charts(filepath.Dir(from)); err != nil {
		return err
	}
	if readme != "" {
		return results.UpdateReadme(readme, filepath.Dir(from))
	}
	return results.Text(stdout)
}

// startInProcess measures a limiter in a separate process, with nothing else in memory.
func startInProcess(ctx context.Context, name string, keys int) (report.Limiter, error) {
	var limiter report.Limiter
	self, err := os.Executable()
	if err != nil {
		return limiter, fmt.Errorf("in-process: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "inprocess", "--limiter", name, "--keys", strconv.Itoa(keys))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return limiter, fmt.Errorf("in-process: %s: %w: %s", name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	if err := json.Unmarshal(out, &limiter); err != nil {
		return limiter, fmt.Errorf("in-process: %s: %w", name, err)
	}
	return limiter, nil
}

func runInProcess(_ context.Context, args []string, stdout, _ io.Writer) error {
	var name string
	var keys int
	fs := newFlags("inprocess", "Measures one limiter in this process.", stdout)
	fs.StringVar(&name, "limiter", "", "`name` of one of: "+strings.Join(inprocess.Names(), "; "))
	fs.IntVar(&keys, "keys", 10_000, "keys")
	if err := parse(fs, args); err != nil {
		return err
	}
	limiter, err := inprocess.Measure(name, keys)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(limiter)
}

// progress is one line that is overwritten on a terminal, and otherwise one line per step.
type progress struct {
	w        io.Writer
	terminal bool
	last     string
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

func (p *progress) step(text string) {
	switch {
	case text == p.last:
	case p.terminal:
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	default:
		_, _ = fmt.Fprintln(p.w, text)
	}
	p.last = text
}

func (p *progress) end() {
	if p.terminal {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}
