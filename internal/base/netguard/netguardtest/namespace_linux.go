package netguardtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"atelier/internal/testkit/servers"
)

// inside is the environment variable of the process in the namespace.
const inside = "ATELIER_TEST_NETWORK_INSIDE"

// Network records the connections that the process in the namespace attempts.
type Network struct {
	socket int

	mu        sync.Mutex
	attempted []netip.AddrPort
	arrived   *sync.Cond
	failed    error
}

// Run runs a test in a process of its own, with a network in which every IP
// address is one of this machine: connections to any address arrive at the
// listeners of the test, if there are any. Creating the network needs root, or
// a kernel that lets other users create namespaces. ATELIER_TEST_NETWORK=skip
// skips the test.
func Run(t *testing.T, test func(t *testing.T, n *Network)) {
	t.Helper()
	if os.Getenv(inside) != "" {
		test(t, newNetwork(t))
		return
	}

	servers.Need(t, "Network namespace", "ATELIER_TEST_NETWORK", func() (struct{}, error) { return struct{}{}, tryNamespace() })
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = namespace()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// The kernel sends Pdeathsig when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if err != nil || strings.Contains(line, "_test.go:") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Fatalf("the test in the namespace: %v", err)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the test did not run in the namespace:\n%s", out)
	}
}

// namespace has a process started in a network namespace of its own. Users
// other than root need a user namespace around it.
func namespace() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// tryNamespace reports whether this kernel lets the test create a namespace.
var tryNamespace = sync.OnceValue(func() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = namespace()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: a network namespace (run as root, or allow user namespaces): %w", servers.ErrMissing, err)
	}
	return nil
})

// newNetwork makes all addresses local to this namespace and begins to record.
func newNetwork(t *testing.T) *Network {
	t.Helper()
	if err := makeAllLocal(); err != nil {
		t.Fatalf("set up the network: %v", err)
	}

	n := &Network{}
	n.arrived = sync.NewCond(&n.mu)
	var err error
	if n.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(swapBytes(unix.ETH_P_ALL))); err != nil {
		t.Fatalf("record packets: %v", err)
	}
	if err := unix.SetsockoptInt(n.socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		_ = unix.SetsockoptInt(n.socket, unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<20) // fewer bytes are enough unless packets are lost, which Attempts reports
	}
	go n.record() // ends with the process, which runs this test only
	return n
}

// makeAllLocal brings the loopback interface up and routes all of IPv4 and IPv6
// to it.
func makeAllLocal() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	index := binary.NativeEndian.AppendUint32(nil, uint32(lo.Index))

	up := make([]byte, unix.SizeofIfInfomsg)
	copy(up[4:], index)
	binary.NativeEndian.PutUint32(up[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(up[12:], unix.IFF_UP)
	if err := sendNetlink(unix.RTM_NEWLINK, 0, up); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}

	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		route := []byte{family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
		route = append(route, 8, 0, unix.RTA_OIF, 0)
		if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
			copy(route[12:], []byte{0, 8, 0, unix.RTA_OIF})
		}
		route = append(route, index...)
		if err := sendNetlink(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, route); err != nil {
			return fmt.Errorf("route all addresses of family %d to lo: %w", family, err)
		}
	}
	return nil
}

// sendNetlink sends a request to the kernel's routing tables and waits for the
// answer (RFC 3549).
func sendNetlink(kind uint16, flags uint16, body []byte) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s)

	message := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	binary.NativeEndian.PutUint32(message, uint32(unix.SizeofNlMsghdr+len(body)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	if err := unix.Sendto(s, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}

	answer := make([]byte, 4096)
	size, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return err
	}
	if size < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("unexpected answer of the kernel")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

// swapBytes returns a 16-bit number in network byte order.
func swapBytes(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// record keeps the destinations of all TCP connection attempts. The kernel hands
// over packets in the order in which they are sent, before connect returns.
func (n *Network) record() {
	packet := make([]byte, 256)
	for {
		size, from, err := unix.Recvfrom(n.socket, packet, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}

		n.mu.Lock()
		if err != nil {
			n.failed = err
			n.arrived.Broadcast()
			n.mu.Unlock()
			return
		}
		at, ok := from.(*unix.SockaddrLinklayer)
		if ok && at.Pkttype == unix.PACKET_OUTGOING {
			if to, ok := parseAttempt(packet[:size]); ok {
				n.attempted = append(n.attempted, to)
				n.arrived.Broadcast()
			}
		}
		n.mu.Unlock()
	}
}

// parseAttempt returns the destination of a packet that begins a TCP connection:
// one with SYN and without ACK (RFC 9293 section 3.1).
func parseAttempt(packet []byte) (netip.AddrPort, bool) {
	const syn, ack = 0x02, 0x10
	var to netip.Addr
	var segment []byte
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4 && packet[9] == unix.IPPROTO_TCP:
		to = netip.AddrFrom4([4]byte(packet[16:20]))
		segment = packet[min(int(packet[0]&15)*4, len(packet)):]
	case len(packet) >= 40 && packet[0]>>4 == 6 && packet[6] == unix.IPPROTO_TCP:
		to = netip.AddrFrom16([16]byte(packet[24:40]))
		segment = packet[40:]
	}
	if len(segment) < 20 || segment[13]&(syn|ack) != syn {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(to, binary.BigEndian.Uint16(segment[2:])), true
}

// mark is an address that only Attempts connects to.
var mark = netip.MustParseAddrPort("223.255.255.77:7")

// Attempts returns the destinations of all TCP connections that the process has
// attempted since the last call, without repeats, in order of time.
func (n *Network) Attempts(t testing.TB) []netip.AddrPort {
	t.Helper()
	// A connection attempt of our own tells that all packets before it were read.
	if conn, err := net.DialTimeout("tcp", mark.String(), time.Minute); err == nil {
		conn.Close()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for !slices.Contains(n.attempted, mark) && n.failed == nil {
		n.arrived.Wait()
	}
	if n.failed != nil {
		t.Fatalf("record packets: %v", n.failed)
	}
	if lost, err := unix.GetsockoptTpacketStats(n.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS); err != nil || lost.Drops > 0 {
		t.Fatalf("packets were lost: %+v, %v", lost, err)
	}

	end := slices.Index(n.attempted, mark)
	var all []netip.AddrPort
	for _, to := range n.attempted[:end] {
		if !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	n.attempted = slices.DeleteFunc(n.attempted[end:], func(to netip.AddrPort) bool { return to == mark })
	return all
}
