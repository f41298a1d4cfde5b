package lib

import (
	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// maxJSONDepth is cjson's default, both ways.
const maxJSONDepth = 1000

// jsonBytesPerUnit is how many bytes of a text are read or written in the time of an instruction.
const jsonBytesPerUnit = 8

// A cjsonLibrary is JSON as Redis's scripts read and write it.
type cjsonLibrary struct {
	*vm.Machine
	null *lua.LUserData
}

// OpenCJSON makes the table cjson global.
func OpenCJSON(m *vm.Machine) {
	lib := cjsonLibrary{m, m.L.NewUserData()}
	t := m.OpenLibrary("cjson", vm.Functions{"encode": lib.encode, "decode": lib.decode})
	t.RawSetString("null", lib.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
}
