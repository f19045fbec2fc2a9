//! The reserved address space: mapped once, made resident by touching, given back by page range.

#[cfg(loom)]
pub(crate) use fake::Map;
#[cfg(not(loom))]
pub(crate) use mapped::Map;

#[cfg(not(loom))]
mod mapped {
    use std::io;
    use std::ptr::NonNull;
    #[cfg(test)]
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// A private anonymous mapping. Reads of untouched or released pages give zeroes.
    pub(crate) struct Map {
        start: NonNull<u8>,
        len: usize,
        /// Has the kernel keep every page, as one would that the program is not made for.
        #[cfg(test)]
        pub(crate) keeps_pages: AtomicBool,
    }

    // SAFETY: `Map` is an address range; what may be read or written in it, and by whom, is decided by
    // the windows, which are handed out one owner at a time.
    unsafe impl Send for Map {}
    // SAFETY: as above; the methods of `&Map` do not touch the memory but through ranges that the caller
    // owns exclusively.
    unsafe impl Sync for Map {}

    impl Map {
        /// Reserves `len` bytes of address space without committing memory, never in huge pages (one
        /// touch would make 2 MiB resident that nobody paid for).
        pub(crate) fn reserve(len: usize) -> io::Result<Map> {
            // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice; no existing
            // memory is affected.
            let start = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    len,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the range was mapped above. Kernels without huge pages answer EINVAL: nothing to do.
            unsafe { libc::madvise(start, len, libc::MADV_NOHUGEPAGE) };
            let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
            let map = Map {
                start,
                len,
                #[cfg(test)]
                keeps_pages: AtomicBool::new(false),
            };
            map.try_it()?;
            Ok(map)
        }

        /// Whether the kernel takes a page back and gives a new one: without that nothing here holds.
        fn try_it(&self) -> io::Result<()> {
            let page = crate::page();
            if self.len < page {
                return Ok(());
            }
            // SAFETY: the first page of the mapping, which nobody has yet.
            unsafe { self.start.as_ptr().write(1) };
            // SAFETY: as above.
            unsafe { self.release(0, page) }?;
            // SAFETY: as above.
            match unsafe { self.start.as_ptr().read() } {
                0 => Ok(()),
                _ => Err(io::Error::other("the kernel does not take pages back (`madvise`)")),
            }
        }

        /// The address of `offset`, which must be inside the mapping.
        #[inline]
        pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
            assert!(offset <= self.len);
            // SAFETY: inside the mapping, as just asserted.
            unsafe { self.start.add(offset) }
        }

        /// Makes `len` bytes from `offset` not resident; they read as zeroes afterwards.
        ///
        /// # Errors
        /// When the kernel keeps the pages: they are resident as before.
        ///
        /// # Safety
        /// The caller owns the range exclusively, and no reference into it exists.
        pub(crate) unsafe fn release(&self, offset: usize, len: usize) -> io::Result<()> {
            if len == 0 {
                return Ok(());
            }
            assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
            #[cfg(test)]
            if self.keeps_pages.load(Relaxed) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // SAFETY: the range is inside the mapping and nobody refers to it (the caller's promise).
            let answer = unsafe { libc::madvise(self.at(offset).as_ptr().cast(), len, libc::MADV_DONTNEED) };
            if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }
    }

    impl Drop for Map {
        fn drop(&mut self) {
            // SAFETY: mapped in `reserve` with this length; every window holds a count of the owner, so
            // none is left.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

/// Under loom the address space is a plain box: loom explores the order of locks, not the kernel.
#[cfg(loom)]
mod fake {
    use std::io;
    use std::ptr::NonNull;

    pub(crate) struct Map {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: as for the real map.
    unsafe impl Send for Map {}
    // SAFETY: as for the real map.
    unsafe impl Sync for Map {}

    impl Map {
        pub(crate) fn reserve(len: usize) -> io::Result<Map> {
            let space: &'static mut [u8] = Box::leak(vec![0; len].into_boxed_slice());
            Ok(Map { start: NonNull::from(space).cast(), len })
        }

        pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
            assert!(offset <= self.len);
            // SAFETY: inside the box, as just asserted.
            unsafe { self.start.add(offset) }
        }

        /// # Safety
        /// As for the real map.
        pub(crate) unsafe fn release(&self, offset: usize, len: usize) -> io::Result<()> {
            // SAFETY: the caller owns the range exclusively.
            unsafe { self.at(offset).as_ptr().write_bytes(0, len) };
            Ok(())
        }
    }

    impl Drop for Map {
        fn drop(&mut self) {
            let space = NonNull::slice_from_raw_parts(self.start, self.len);
            // SAFETY: leaked from a box of this length in `reserve`.
            drop(unsafe { Box::from_raw(space.as_ptr()) });
        }
    }
}
