// Package conformance tests a cluster with client-go, controller-runtime, helm and kustomize.
// KUBECONFIG names the cluster.
package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// timeout is longer than any single operation takes.
const timeout = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv("KUBECONFIG") == "" {
		fmt.Fprintln(os.Stderr, "KUBECONFIG must name a cluster")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// fixture contains the clients of one test and its namespace.
type fixture struct {
	ctx       context.Context
	config    *rest.Config
	client    *kubernetes.Clientset
	namespace string
}

func start(t *testing.T) fixture {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 4*timeout)
	t.Cleanup(cancel)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(t, err)
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	check(t, err)
	name := "conformance-" + random()
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("the namespace is not deleted: %v", err)
		}
	})
	return fixture{ctx, config, client, name}
}

func random() string {
	bytes := make([]byte, 4)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return hex.EncodeToString(bytes)
}

// check fails the test if there is an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// require fails the test if a condition is false.
func require(t *testing.T, holds bool, format string, words ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, words...)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(timeout)
	for !holds() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", timeout, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}},
		Data:       map[string]string{"key": "value"},
	}
}
