// Package cjson is the library cjson: JSON as Redis's scripts read and write it. A library belongs to the goroutine of
// its machine.
package cjson

import (
	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/machine"
)

// maxDepth is cjson's default, both ways.
const maxDepth = 1000

// bytesPerUnit is how many bytes of a text are read or written in the time of an instruction.
const bytesPerUnit = 8

type library struct {
	*machine.Machine
	null *lua.LUserData
}

// Open makes the table cjson global.
func Open(m *machine.Machine) {
	lib := library{m, m.L.NewUserData()}
	t := m.OpenLibrary("cjson", machine.Functions{"encode": lib.encode, "decode": lib.decode})
	t.RawSetString("null", lib.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
}
