package patience

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// processes returns the CPU time of this process and its descendants, dead ones included once waited for. It
// requires Linux's /proc.
func processes() (sum time.Duration, known bool) {
	return tree("self")
}

func tree(pid string) (sum time.Duration, known bool) {
	sum, known = cpuTime(pid)
	if !known {
		return 0, false
	}
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return sum, false
	}
	for _, thread := range threads {
		children, err := os.ReadFile("/proc/" + pid + "/task/" + thread.Name() + "/children")
		if err != nil && pid == "self" && exists("/proc/self/task/"+thread.Name()) {
			return sum, false
		}
		for child := range strings.FieldsSeq(string(children)) {
			of, _ := tree(child) // it may have ended meanwhile
			sum += of
		}
	}
	return sum, true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// cpuTime reads fields 14 to 17 of stat: the ticks of user and system time, also of children waited for. The
// second field, the name, may contain spaces and ends with the last parenthesis.
func cpuTime(pid string) (sum time.Duration, known bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 15 {
		return 0, false
	}
	const perSecond = 100 // USER_HZ
	for _, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(ticks) * time.Second / perSecond
	}
	return sum, true
}
