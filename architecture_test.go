package cellserver_test

import (
	"debug/elf"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "cellserver"

// TestImportsGoDown holds ARCHITECTURE.md's floors: a package imports only packages further down this list.
func TestImportsGoDown(t *testing.T) {
	floors := []string{
		module + "/cmd/cellserver",
		module + "/internal/dashboard",
		module + "/internal/metrics",
		module + "/internal/server",
		module + "/internal/commands/rig",
		module + "/internal/commands",
		module + "/internal/commands/keys",
		module + "/internal/commands/connection",
		module + "/internal/commands/admin",
		module + "/internal/commands/operator",
		module + "/internal/commands/docs",
		module + "/internal/commands/limiters",
		module + "/internal/session",
		module + "/internal/background",
		module + "/internal/transact",
		module + "/internal/shadow",
		module + "/internal/replay",
		module + "/internal/monitor",
		module + "/internal/transfer",
		module + "/internal/decide",
		module + "/internal/observe",
		module + "/internal/clients",
		module + "/internal/login",
		module + "/internal/peer",
		module + "/internal/argument",
		module + "/internal/reply",
		module + "/internal/catalog",
		module + "/internal/lua",
		module + "/internal/lua/baselib",
		module + "/internal/lua/strlib",
		module + "/internal/lua/tablelib",
		module + "/internal/lua/mathlib",
		module + "/internal/lua/cjson",
		module + "/internal/lua/redislib",
		module + "/internal/lua/reply",
		module + "/internal/lua/operators",
		module + "/internal/lua/machine",
		module + "/internal/lua/native",
		module + "/internal/lua/rewrite",
		module + "/internal/lua/effort",
		module + "/internal/lua/pattern",
		module + "/internal/lua/bound",
		module + "/internal/lua/message",
		module + "/internal/lua/number",
		module + "/internal/remote/watch",
		module + "/internal/histogram",
		module + "/internal/often",
		module + "/internal/buildinfo",
		module + "/internal/clock",
		module + "/internal/memory",
		module + "/internal/logwriter",
		module + "/internal/buffers",
		module + "/internal/limits",
		module + "/internal/yamlfile",
		module + "/internal/flagvalue",
		module + "/internal/queue",
		module + "/internal/persist",
		module + "/internal/persist/disk/disktest",
		module + "/internal/persist/disk",
		module + "/internal/rdb",
		module + "/internal/remote/remotetest",
		module + "/internal/remote",
		module + "/internal/remote/servers",
		module + "/internal/certs/certtest",
		module + "/internal/certs",
		module + "/internal/shard",
		module + "/internal/store/storetest",
		module + "/internal/store",
		module + "/internal/remote/ahead",
		module + "/internal/remote/recent",
		module + "/internal/remote/timeline",
		module + "/internal/topkeys",
		module + "/internal/limiter/limitertest",
		module + "/internal/limiter",
		module + "/internal/window",
		module + "/internal/bucket",
		module + "/internal/reserve",
		module + "/internal/lease",
		module + "/internal/funnel",
		module + "/internal/funnel/vectors",
		module + "/internal/acl",
		module + "/internal/glob",
		module + "/internal/smallfile",
		module + "/internal/resp",
		module + "/internal/resptest",
		module + "/internal/redistest",
		module + "/internal/processtest",
		module + "/internal/killtest",
		module + "/internal/patience",
		module + "/internal/racetest",
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./cmd/...", "./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := slices.Index(floors, fields[0])
		if from < 0 {
			t.Errorf("%s has no floor: add it to the list here and to ARCHITECTURE.md", fields[0])
		}
		for _, imported := range fields[1:] {
			if to := slices.Index(floors, imported); strings.HasPrefix(imported, module+"/") && to <= from {
				t.Errorf("%s imports %s, which is not below it", fields[0], imported)
			}
			if strings.HasPrefix(imported, "github.com/tidwall/redcon") && fields[0] != module+"/internal/resp" {
				t.Errorf("%s imports redcon; only internal/resp may", fields[0])
			}
			if strings.HasPrefix(imported, "github.com/yuin/gopher-lua") && !ofScripts(fields[0]) {
				t.Errorf("%s imports gopher-lua; only internal/lua and what is below it may", fields[0])
			}
			if ofScripts(fields[0]) && strings.HasPrefix(imported, module+"/") && !ofScripts(imported) && imported != module+"/internal/resp" {
				t.Errorf("%s imports %s; besides each other, the packages of scripts may only import internal/resp", fields[0], imported)
			}
			for _, edge := range []string{"server", "metrics", "dashboard", "replay"} { // they know sessions or figures, and no commands
				if fields[0] == module+"/internal/"+edge && (strings.HasPrefix(imported, module+"/internal/commands") ||
					imported == module+"/internal/session" || imported == module+"/internal/catalog") {
					t.Errorf("%s imports %s", fields[0], imported)
				}
			}
			if imported == "unsafe" || imported == "C" {
				t.Errorf("%s imports %q", fields[0], imported)
			}
		}
	}
}

// ofScripts reports whether a package is internal/lua or in a folder of it.
func ofScripts(path string) bool {
	return path == module+"/internal/lua" || strings.HasPrefix(path, module+"/internal/lua/")
}

// TestBinary: it is static, and has neither a plotting library nor methods that nobody calls. One call of a method by a name that
// is computed, as text/template has, makes the linker keep every exported method of every type: 4 MB of go-redis alone.
func TestBinary(t *testing.T) {
	f, err := elf.Open(build(t))
	if err != nil {
		t.Skip("not a system with ELF binaries:", err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker")
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	has := func(part string) bool {
		return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return strings.Contains(s.Name, part) })
	}
	if !has("go-redis/v9.(*Client)") {
		t.Error("go-redis has other names in the binary than this test looks for")
	}
	for _, part := range []string{"go-redis/v9.cmdable.GeoAdd", "text/template.(*state)", "gonum.org/"} {
		if has(part) {
			t.Errorf("the binary has %s", part)
		}
	}
}
