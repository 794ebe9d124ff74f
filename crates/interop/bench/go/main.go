// Measures client-go for `cargo xtask bench client`. Each measurement runs in a separate
// process, as in crates/interop/bench/src/client/child.rs for the other clients.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
)

const namespace = "default"

type measured struct {
	Seconds float64 `json:"seconds"`
	Memory  float64 `json:"memory"`
	// The heap in use after a garbage collection, with the result still reachable.
	Heap float64 `json:"heap"`
}

// Arguments: list, pages or cache; json, protobuf or default (protobuf, compressed with gzip);
// the path of a kubeconfig; the expected number of pods.
func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

func run(job, encoding, kubeconfig, count string) error {
	expected, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	// Excludes memory that the process allocates once for its first connection.
	client, err := connect(kubeconfig, encoding)
	if err != nil {
		return err
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		return err
	}
	before, err := beginMemory()
	if err != nil {
		return err
	}
	started := time.Now()
	if client, err = connect(kubeconfig, encoding); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen, held, err := map[string]func(context.Context, kubernetes.Interface) (int, any, error){
		"list": list, "pages": pages, "cache": fill,
	}[job](ctx, client)
	if err != nil {
		return err
	}
	seconds := time.Since(started).Seconds()
	peak, err := memory("VmHWM:")
	if err != nil {
		return err
	}
	if seen != expected {
		return fmt.Errorf("%d pods of %d", seen, expected)
	}
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	runtime.KeepAlive(held)
	return json.NewEncoder(os.Stdout).Encode(measured{seconds, peak - before, float64(heap.HeapAlloc)})
}

// Connects without client-go's default limit of five requests per second.
func connect(kubeconfig, encoding string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.DisableCompression = encoding != "default"
	if encoding == "json" {
		// The default is protobuf.
		config.ContentType = apiruntime.ContentTypeJSON
	}
	return kubernetes.NewForConfig(config)
}

func list(ctx context.Context, client kubernetes.Interface) (int, any, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, nil, err
	}
	for index := range pods.Items {
		look(&pods.Items[index])
	}
	return len(pods.Items), pods, nil
}

// Lists with client-go's pager, which prefetches pages of 500, as Longshore's client does.
func pages(ctx context.Context, client kubernetes.Interface) (int, any, error) {
	seen := 0
	pods := pager.New(func(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
		return client.CoreV1().Pods(namespace).List(ctx, options)
	})
	err := pods.EachListItem(ctx, metav1.ListOptions{}, func(object apiruntime.Object) error {
		look(object.(*corev1.Pod))
		seen++
		return nil
	})
	return seen, nil, err
}

// Waits until the cache of a shared informer is synced.
func fill(ctx context.Context, client kubernetes.Interface) (int, any, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods()
	pods.Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	held, err := pods.Lister().List(labels.SelectorFromSet(labels.Set{"app": "worker"}))
	return len(held), factory, err
}

var looked int

func look(pod *corev1.Pod) {
	looked += len(pod.Name) + len(pod.Status.Phase)
}

// Resets the peak. Returns the resident memory in bytes.
func beginMemory() (float64, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return memory("VmRSS:")
}

func memory(field string) (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of the process", field)
}
