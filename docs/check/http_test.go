package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// TestDoorTranscripts runs the commands of docs/HTTP.md and docs/ENVOY.md on the servers that they start.
// With UPDATE_DOCS set, it writes their output.
func TestDoorTranscripts(t *testing.T) {
	processtest.Need(t, "bash", "curl", "openssl", "sed")
	for _, tt := range []struct{ document, file string }{{"docs/HTTP.md", "limits.yml"}, {"docs/ENVOY.md", "limits/site.yaml"}} {
		t.Run(filepath.Base(tt.document), func(t *testing.T) {
			compareBlocks(t, tt.document, steady(t, tt.document, func() string { return followDoor(t, tt.document, tt.file) }))
		})
	}
}

// followDoor returns a document's blocks with the output of a new server, which has the YAML before them as a
// file.
func followDoor(t *testing.T, document, file string) string {
	t.Helper()
	dir, grpc := filepath.Dir(build(t)), processtest.FreeAddr(t)
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err != nil {
		t.Fatal(err)
	}
	const grpcAddr = "127.0.0.1:6382"
	var s server
	var ran strings.Builder
	for _, f := range fences(t, document) {
		if f.language == "yaml" {
			write(t, dir, file, f.text)
		}
		if f.language != "console" {
			continue
		}
		ran.WriteString("```console\n")
		for _, step := range strings.Split(f.text, "$ ")[1:] {
			command, _, _ := strings.Cut(step, "\n")
			ran.WriteString("$ " + command + "\n")
			if args, ok := strings.CutSuffix(command, " &"); ok {
				args = anyPort.ReplaceAllStringFunc(args, func(addr string) string {
					if addr == grpcAddr {
						return grpc
					}
					return "127.0.0.1:0"
				})
				s = start(t, "bash", "-c", "cd "+dir+" && exec "+args)
				continue
			}
			command = strings.ReplaceAll(s.ports(command), grpcAddr, grpc)
			ran.WriteString(run(t, dir, "bash", "-c", "exec 2>&1; "+command+"; true")) // a mistake has an exit code
		}
		ran.WriteString("```\n")
	}
	return ran.String()
}

// TestHTTPPrograms runs the programs of docs/HTTP.md, against a server that allows, limits, hangs or is down.
func TestHTTPPrograms(t *testing.T) {
	processtest.Need(t, "redis-cli")
	binary, ran := build(t), 0
	limits := ""
	for _, f := range fences(t, "docs/HTTP.md") {
		if f.language == "yaml" {
			limits = write(t, t.TempDir(), "limits.yml", f.text)
		}
		example, ok := map[string]func(t *testing.T, dir, code string) string{"python": runPython, "js": runNodeAlone}[f.language]
		if !ok {
			continue
		}
		ran++
		t.Run(f.language, func(t *testing.T) {
			s := start(t, binary, "--limits-file", limits)
			tryWithoutAnswer(t, f.text, example, s, "cl.check", "api-key", "laoqian", "1000000", "DEBIT")
			if got := example(t, t.TempDir(), s.ports(strings.Replace(f.text, `"api-key"`, `"none"`, 1))); strings.ToLower(strings.TrimSpace(got)) != "false" {
				t.Errorf("an unknown limit: got %q", got)
			}
		})
	}
	if ran != 2 {
		t.Errorf("ran %d programs, want two", ran)
	}
}

// runNodeAlone runs code without a library.
func runNodeAlone(t *testing.T, dir, code string) string {
	processtest.Need(t, "node")
	return run(t, dir, "node", write(t, dir, "example.mjs", code))
}

// TestRatelimitTranscript runs the commands of docs/RATELIMIT.md, on free ports. With UPDATE_DOCS set, it
// writes their output.
func TestRatelimitTranscript(t *testing.T) {
	processtest.Need(t, "bash", "curl")
	const document, config = "docs/RATELIMIT.md", "data/ratelimit/config"
	dir := filepath.Dir(build(t))
	if err := os.MkdirAll(filepath.Join(dir, config), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, config+"/limits", read(t, "deploy/envoy/limits.yaml"))
	environment := "LOG_LEVEL=info HOST=127.0.0.1 DEBUG_HOST=127.0.0.1 GRPC_HOST=127.0.0.1 GRPC_PORT=0"
	var free, printed []string // addresses, and those in their place
	for name, addr := range map[string]string{"PORT": "127.0.0.1:8080", "DEBUG_PORT": "127.0.0.1:6070"} {
		own := processtest.FreeAddr(t)
		environment += " " + name + "=" + strings.TrimPrefix(own, "127.0.0.1:")
		free, printed = append(free, addr, own), append(printed, own, addr)
	}
	block := strings.NewReplacer(free...).Replace(consoleBlock.FindString(read(t, document)))
	first, rest, _ := strings.Cut(block, " &\n")
	start(t, "bash", "-c", "cd "+dir+" && exec env "+environment+" "+strings.TrimPrefix(first, "```console\n$ "))
	ran := first + " &\n" + transcript(t, dir, rest, func(text string) string { return text }) + "```\n"
	compareBlocks(t, document, strings.NewReplacer(printed...).Replace(ran))
}

// TestEnvoyLimits: docs/ENVOY.md shows deploy/envoy/limits.yaml.
func TestEnvoyLimits(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "deploy/envoy/limits.yaml"), "\n")
	for _, f := range fences(t, "docs/ENVOY.md") {
		if f.language == "yaml" && f.text != text {
			t.Errorf("docs/ENVOY.md has\n%s\nand deploy/envoy/limits.yaml\n%s", f.text, text)
		}
	}
}

// TestEnvoyUser: the user of docs/ENVOY.md may do the document's call, and not one about another domain.
func TestEnvoyUser(t *testing.T) {
	processtest.Need(t, "bash", "curl")
	document, dir, grpc := read(t, "docs/ENVOY.md"), t.TempDir(), processtest.FreeAddr(t)
	user := regexp.MustCompile(`(?m)^    (user gateway .*)$`).FindStringSubmatch(document)
	call := regexp.MustCompile(`(?m)^\$ (printf .*) > call\n\$ (curl .*) -o reply .* (http://\S+)$`).FindStringSubmatch(document)
	if user == nil || call == nil {
		t.Fatal("docs/ENVOY.md has no user, or no call")
	}
	for file, domain := range map[string]string{"site.yaml": "site", "shop.yaml": "shop"} {
		write(t, dir, file, strings.Replace(read(t, "deploy/envoy/limits.yaml"), "domain: site", "domain: "+domain, 1))
	}
	acl := write(t, dir, "users.acl", user[1]+"\n")
	tokens := write(t, dir, "tokens", "0123456789abcdef gateway\n")
	start(t, build(t), "--grpc-addr", grpc, "--envoy-config", dir, "--aclfile", acl, "--http-tokens-file", tokens)
	for domain, want := range map[string]string{"site": "grpc-status: 0", "shop": "grpc-status: 7"} {
		ask := strings.Replace(call[1], "004site", "004"+domain, 1) + " > call; " + call[2] + " -D - -o reply -H 'Authorization: Bearer 0123456789abcdef' " +
			strings.Replace(call[3], "127.0.0.1:6382", grpc, 1)
		if got := run(t, dir, "bash", "-c", ask); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", domain, got, want)
		}
	}
}
