package subprocess_test

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := play(t, "dial", l.Addr().String())
	if _, err := run(t, p); err != nil {
		t.Fatalf("with the network: %v", err)
	}
	p.Limits.Network = false
	_, err = run(t, p)
	if !separable() {
		if err != nil {
			t.Errorf("run = %v, want the network that cannot be taken away", err)
		}
		t.Skip("this system does not let us take the network away")
	}
	if e := exit(t, err); !strings.Contains(e.Tail, "network is unreachable") {
		t.Errorf("exit = %+v, want no network", e)
	}
}

// separable tells whether the system lets us make networks, as far as the tests
// can find out for themselves.
func separable() bool {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	return cmd.Run() == nil
}

// TestPowers holds programs that root runs to power over files.
func TestPowers(t *testing.T) {
	t.Parallel()
	got, err := run(t, shell(t, "grep -e CapEff -e CapPrm -e NoNewPrivs /proc/self/status"))
	if err != nil || len(got) != 3 {
		t.Fatalf("run = %q, %v", got, err)
	}
	for _, line := range got[:2] {
		name, text, _ := strings.Cut(line, ":")
		powers, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil || powers&^0x1f != 0 {
			t.Errorf("%s = %s, %v; want those over files at most", name, text, err)
		}
	}
	if !strings.HasSuffix(got[2], "1") {
		t.Errorf("%s, want 1", got[2])
	}
}
