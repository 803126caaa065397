#!/usr/bin/env bash
# Guess, written after the first sign: `vector[0]` after an algorithm of Boost.Compute is what the algorithm stored. Both
# use the default queue, which executes commands in order.
# What happens: reading an element makes a queue of its own and does not wait for the default one. While the algorithm is
# pending, operator[], at(), front() and an iterator return the old value. copy() and copy_n() wait.
# Version: Boost 1.81 of Debian 12, PoCL 3.0 on a CPU. An event that is set later holds the default queue back, so that
# the outcome does not depend on time. Seen on 1 December 2026.
# Why it matters: results are old or new by chance: right for a short kernel, wrong for a long one. A benchmark that reads
# an element to wait for its kernel measures nothing of it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages pocl-binary-distribution==3.0
apt-get -qq -o APT::Sandbox::User=root download libboost1.81-dev=1.81.0-5+deb12u1 ocl-icd-libopencl1=2.3.1-1 \
  ocl-icd-opencl-dev=2.3.1-1 opencl-c-headers=3.0~2023.02.06-1
for package in *.deb; do dpkg -x "$package" .; done
mkdir vendors
find "$work/packages" -name 'libpocl*.so' >vendors/pocl.icd
export OCL_ICD_VENDORS="$work/vendors" POCL_CACHE_DIR="$work/cache" LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu"
echo "Boost $(sed -n 's/.*BOOST_LIB_VERSION "\(.*\)".*/\1/p' usr/include/boost/version.hpp), PoCL 3.0" | tee seen

cat >elements.cpp <<'CPP'
#include <boost/compute.hpp>
#include <cstdio>
namespace compute = boost::compute;

int main() {
  compute::command_queue &queue = compute::system::default_queue();
  compute::vector<int> vector(1000, queue.get_context());
  compute::fill(vector.begin(), vector.end(), 1);
  queue.finish();

  compute::user_event gate(queue.get_context());
  queue.enqueue_barrier(compute::wait_list(gate));
  compute::fill(vector.begin(), vector.end(), 2);  // pending until the gate opens
  const int element = vector[0], at = vector.at(1), front = vector.front(), iterator = *vector.begin();
  gate.set_status(CL_COMPLETE);
  int copied;
  compute::copy_n(vector.begin(), 1, &copied);
  std::printf("after fill(1) and fill(2): operator[] %d, at() %d, front() %d, iterator %d, copy_n() %d\n", element, at, front,
              iterator, copied);
}
CPP
g++ -std=c++17 -w -DCL_TARGET_OPENCL_VERSION=120 -DBOOST_COMPUTE_MAX_CL_VERSION=102 -I usr/include elements.cpp -o elements \
  -L usr/lib/x86_64-linux-gnu -lOpenCL
./elements 2>/dev/null | tee -a seen

expected='Boost 1_81, PoCL 3.0
after fill(1) and fill(2): operator[] 1, at() 1, front() 1, iterator 1, copy_n() 2'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
