// Package cjson is the library cjson: JSON as Redis's scripts read and write it. A library belongs to the goroutine of
// its machine.
package lib

import (
	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// maxDepth is cjson's default, both ways.
const maxJSONDepth = 1000

// bytesPerUnit is how many bytes of a text are read or written in the time of an instruction.
const jsonBytesPerUnit = 8

type cjsonLibrary struct {
	*vm.Machine
	null *lua.LUserData
}

// Open makes the table cjson global.
func OpenCJSON(m *vm.Machine) {
	lib := cjsonLibrary{m, m.L.NewUserData()}
	t := m.OpenLibrary("cjson", vm.Functions{"encode": lib.encode, "decode": lib.decode})
	t.RawSetString("null", lib.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
}
