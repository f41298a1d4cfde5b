package processtest

import "testing"

// TestPortsOfProcesses: two processes that begin at the same block never find the same port, though none of
// the ports is in use yet.
func TestPortsOfProcesses(t *testing.T) {
	processes, seen := []*ports{{number: 7}, {number: 7}}, map[string]bool{}
	for range 3 * blockPorts {
		for i, p := range processes {
			l, err := p.listen()
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close()
			if addr := l.Addr().String(); seen[addr] {
				t.Fatalf("process %d finds %s, which is found already", i, addr)
			} else {
				seen[addr] = true
			}
		}
	}
	for _, p := range processes {
		for _, l := range p.owned {
			_ = l.Close()
		}
	}
}
