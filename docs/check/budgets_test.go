package check

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

const budgets = "docs/BUDGETS.md"

// TestBudgets follows docs/BUDGETS.md in a directory that has what a clone has. With UPDATE_DOCS set, it
// writes the output.
func TestBudgets(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs and takes seconds")
	}
	processtest.Need(t, "redis-cli", "curl", "bash", "awk", "sed", "go", "/usr/bin/python3")
	written := strings.Join(consoleBlock.FindAllString(read(t, budgets), -1), "")
	var ran string
	for range 10 { // a stall, or midnight, between commands changes replies
		if ran = followBudgets(t); withoutTimes(ran) == withoutTimes(written) {
			return
		}
	}
	compareBlocks(t, budgets, ran)
}

// passing matches the times of replies, which depend on when a test runs, with what is before them.
var passing = regexp.MustCompile(`(?i)((?:retry|reset)_after_ms":|[45]\) \(integer\) |try again in |retry-after: |reset-tokens: |;t=)[0-9][\w.]*`)

func withoutTimes(text string) string { return passing.ReplaceAllString(text, "${1}T") }

// patient gives the document's programs time-outs that do not pass on a busy machine.
var patient = strings.NewReplacer(
	`redis.NewClient(cellserver.Options("127.0.0.1:6380")), `, `redis.NewClient(patient(cellserver.Options("127.0.0.1:6380"))), Timeout: time.Hour, `,
	"func main() {", `func patient(o *redis.Options) *redis.Options {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Hour, time.Hour, time.Hour, time.Hour
	return o
}

func main() {`,
	`connect("cellserver://127.0.0.1:6380")`, `connect("cellserver://127.0.0.1:6380", socket_timeout=3600, socket_connect_timeout=3600)`,
	"./proxy ", "./proxy --timeout 1h ")

// followBudgets returns the document's blocks with the output of new servers.
func followBudgets(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(build(t))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(here, "adapters"), filepath.Join(dir, "adapters")); err != nil {
		t.Fatal(err)
	}
	ports, s := budgetPorts(t), server{}
	place := func(text string) string {
		text = strings.ReplaceAll(text, "python3 ", "/usr/bin/python3 ") // has the client library
		return s.ports(ports.Replace(text))
	}
	var ran strings.Builder
	for _, f := range fences(t, budgets) {
		name := ""
		if m := programName.FindStringSubmatch(f.text); m != nil {
			name = m[1]
		}
		switch f.language {
		case "yaml":
			write(t, dir, "limits.yml", f.text)
		case "go", "python", "bash":
			write(t, dir, name, place(patient.Replace(f.text)))
		case "sh":
			if f.text != "make build\n" {
				t.Errorf("no test runs %s", f.text)
			}
		case "console":
			ran.WriteString("```console\n")
			for _, step := range strings.Split(f.text, "$ ")[1:] {
				command, want, _ := strings.Cut(step, "\n")
				ran.WriteString("$ " + command + "\n")
				program, background := strings.CutSuffix(command, " &")
				switch {
				case !background:
					ran.WriteString(inTime(command, want, func() string { return run(t, dir, "bash", "-c", "exec 2>&1; "+place(command)) }))
				case strings.HasPrefix(program, "./cellserver "):
					program = strings.TrimSuffix(program, " 2> cellserver.log") // start reads it
					s = start(t, "bash", "-c", "cd "+dir+" && exec "+anyPort.ReplaceAllString(program, "127.0.0.1:0"))
				default:
					serve(t, dir, place(patient.Replace(program)))
				}
			}
			ran.WriteString("```\n")
		}
	}
	return ran.String()
}

// inTime runs a command, and one that sleeps again until what it waits for is there.
func inTime(command, want string, do func() string) (got string) {
	tries := 60
	if os.Getenv("UPDATE_DOCS") != "" {
		tries = 5
	}
	for range tries {
		if got = do(); got == want || !strings.HasPrefix(command, "sleep ") {
			break
		}
	}
	return got
}

// budgetPorts replaces the ports of the document's own programs by free ones.
func budgetPorts(t *testing.T) *strings.Replacer {
	t.Helper()
	var pairs []string
	taken := map[string]bool{"127.0.0.1:6380": true, "127.0.0.1:6381": true, "127.0.0.1:9380": true}
	for _, addr := range anyPort.FindAllString(read(t, budgets), -1) {
		if !taken[addr] {
			taken[addr] = true
			pairs = append(pairs, addr, processtest.FreeAddr(t))
		}
	}
	return strings.NewReplacer(pairs...)
}

// serve runs a command in the background, until the test ends, and returns when all addresses that it names
// accept connections.
func serve(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), "bash", "-c", command)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true} // includes the children of go run
	var log processtest.Log
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for _, addr := range anyPort.FindAllString(command, -1) {
		accepts := func() bool {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		}
		if !patience.Until(accepts) {
			t.Fatalf("%s does not accept connections of\n%s\n%s", addr, command, log.String())
		}
	}
}
