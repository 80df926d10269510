//! Small dense matrices, and the inverse of M-matrices by elimination without subtraction: what leaves a state is added
//! up from where it goes rather than taken as a difference, so that every entry keeps its relative accuracy however
//! near the matrix is to singular (Grassmann, Taksar and Heyman 1985). That is why no general library is used.

/// A matrix, row by row.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    pub(super) columns: usize,
    entries: Vec<f64>,
}

impl Matrix {
    pub(super) fn zero(rows: usize, columns: usize) -> Self {
        Self { columns, entries: vec![0.0; rows * columns] }
    }

    pub(super) fn rows(&self) -> usize {
        self.entries.len() / self.columns
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.columns..(i + 1) * self.columns]
    }

    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.entries[i * self.columns..(i + 1) * self.columns]
    }

    pub(super) fn row_sums(&self) -> Vec<f64> {
        (0..self.rows()).map(|i| self.row(i).iter().sum()).collect()
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = Self::zero(self.rows(), other.columns);
        for i in 0..self.rows() {
            let sum = product.row_mut(i);
            for (k, &factor) in self.row(i).iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
                add_multiple(sum, factor, other.row(k));
            }
        }
        product
    }

    #[must_use]
    pub(super) fn plus(mut self, other: &Self) -> Self {
        add_multiple(&mut self.entries, 1.0, &other.entries);
        self
    }

    /// Matrix times column.
    pub(super) fn apply(&self, column: &[f64]) -> Vec<f64> {
        (0..self.rows()).map(|i| inner(self.row(i), column)).collect()
    }
}

pub(super) fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn add_multiple(to: &mut [f64], factor: f64, of: &[f64]) {
    to.iter_mut().zip(of).for_each(|(to, of)| *to += factor * of);
}

/// The known part of the diagonal of an M-matrix.
pub(super) enum Diagonal {
    /// The diagonal by the row sums, which are not negative: nothing is ever subtracted.
    Sums(Vec<f64>),
    /// The diagonal itself.
    Itself(Vec<f64>),
}

/// An M-matrix, diagonal minus `off`, as the product (I − U)(S − L) of its elimination from the last state to the
/// first.
pub(super) struct Factors {
    off: Matrix,
    pivots: Vec<f64>,
}

impl Factors {
    /// `off` holds the negated off-diagonal entries; its own diagonal is ignored.
    pub(super) fn new(mut off: Matrix, mut diagonal: Diagonal) -> Self {
        let n = off.rows();
        let mut pivots = vec![0.0; n];
        for k in (0..n).rev() {
            let row = off.row(k)[..k].to_vec();
            pivots[k] = match &diagonal {
                Diagonal::Sums(sums) => sums[k] + row.iter().sum::<f64>(),
                Diagonal::Itself(own) => own[k],
            };
            for i in 0..k {
                let factor = off.row(i)[k] / pivots[k];
                if factor == 0.0 {
                    continue;
                }
                add_multiple(&mut off.row_mut(i)[..k], factor, &row);
                match &mut diagonal {
                    Diagonal::Sums(sums) => sums[i] += factor * sums[k],
                    Diagonal::Itself(own) => own[i] -= factor * row[i],
                }
            }
        }
        Self { off, pivots }
    }

    /// The solution X of M·X = B.
    pub(super) fn solve(&self, mut b: Matrix) -> Matrix {
        let n = self.pivots.len();
        for k in (0..n).rev() {
            let row = b.row(k).to_vec();
            for i in 0..k {
                let factor = self.off.row(i)[k] / self.pivots[k];
                if factor != 0.0 {
                    add_multiple(b.row_mut(i), factor, &row);
                }
            }
        }
        for k in 0..n {
            let mut row = b.row(k).to_vec();
            for j in 0..k {
                add_multiple(&mut row, self.off.row(k)[j], b.row(j));
            }
            row.iter_mut().for_each(|x| *x /= self.pivots[k]);
            b.row_mut(k).copy_from_slice(&row);
        }
        b
    }

    /// The solution of M·x = b.
    pub(super) fn solve_column(&self, b: &[f64]) -> Vec<f64> {
        self.solve(Matrix { columns: 1, entries: b.to_vec() }).entries
    }

    /// The solution of x·M = b.
    pub(super) fn solve_row(&self, b: &[f64]) -> Vec<f64> {
        let (n, mut x) = (self.pivots.len(), b.to_vec());
        for k in (0..n).rev() {
            x[k] = (x[k] + (k + 1..n).map(|i| x[i] * self.off.row(i)[k]).sum::<f64>()) / self.pivots[k];
        }
        for k in 0..n {
            x[k] += (0..k).map(|i| x[i] * self.off.row(i)[k]).sum::<f64>() / self.pivots[k];
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[f64]]) -> Matrix {
        Matrix { columns: rows[0].len(), entries: rows.concat() }
    }

    #[test]
    fn a_solution_multiplies_back() {
        let off = matrix(&[&[0.0, 2.0, 1.0], &[0.5, 0.0, 3.0], &[4.0, 0.25, 0.0]]);
        let sums = vec![0.1, 1.0, 1e-9];
        let own: Vec<f64> = off.row_sums().iter().zip(&sums).map(|(a, b)| a + b).collect();
        for diagonal in [Diagonal::Sums(sums), Diagonal::Itself(own.clone())] {
            let factors = Factors::new(off.clone(), diagonal);
            let b = [1.0, 2.0, 3.0];
            let (column, row) = (factors.solve_column(&b), factors.solve_row(&b));
            for i in 0..3 {
                let back = own[i] * column[i] - inner(off.row(i), &column);
                assert!((back - b[i]).abs() < 1e-12, "{back}");
                let back = own[i] * row[i] - (0..3).map(|j| row[j] * off.row(j)[i]).sum::<f64>();
                assert!((back - b[i]).abs() < 1e-12, "{back}");
            }
        }
    }
}
